(() => {
  "use strict";
  const [NARROWEST, WIDEST, GAP, EDGES] = [230, 440, 72, 84]; // of panels, in pixels
  const themes = JSON.parse(document.getElementById("themes").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const figures = [...document.querySelectorAll("figure")];
  const drawn = new Map();

  // A legend takes as many rows as its names need; about 7 pixels a letter.
  function wrapLegend(panel, width) {
    for (const { encoding } of [panel, ...(panel.layer ?? [])]) {
      const { legend, sort, title } = encoding?.color ?? {};
      if (!legend || !Array.isArray(sort)) continue;
      const longest = Math.max(...sort.map((name) => String(name).length));
      const room = width - 7 * String(title ?? "").length;
      legend.columns = Math.max(1, Math.floor(room / (7 * longest + 34)));
    }
  }

  // As many panels in a row as fit, in rows of even length, and as wide as the page allows.
  function fit(spec, width) {
    if (spec.vconcat) return { ...spec, vconcat: spec.vconcat.map((one) => fit(one, width)) };
    const panels = spec.concat ?? spec.hconcat;
    const columns = Math.min(panels ? panels.length : 1, spec.columns ?? Infinity);
    const most = Math.max(1, Math.floor((width - EDGES + GAP) / (NARROWEST + GAP)));
    const rows = Math.ceil(columns / most);
    const row = Math.ceil(columns / rows);
    const wide = Math.min(WIDEST, Math.floor((width - EDGES - (row - 1) * GAP) / row));
    for (const panel of panels ?? [spec]) {
      if (typeof panel.width === "number") panel.width = wide;
    }
    const apart = spec.resolve?.scale?.color === "independent";
    for (const panel of panels ?? [spec]) wrapLegend(panel, apart ? wide : width - EDGES);
    if (!panels) return spec;
    const { hconcat, ...rest } = spec;
    return { ...rest, concat: panels, columns: row };
  }

  async function draw(figure) {
    drawn.get(figure)?.finalize();
    drawn.set(figure, null);
    const place = figure.querySelector(".chart");
    const spec = fit(JSON.parse(figure.querySelector("script").textContent), place.clientWidth);
    spec.description = place.dataset.alt;
    try {
      const embedded = await vegaEmbed(place, spec, {
        actions: false,
        renderer: "svg",
        config: dark.matches ? themes.dark : themes.light,
        tooltip: { theme: dark.matches ? "dark" : "light" },
      });
      drawn.set(figure, embedded);
      figure.querySelector(".save").hidden = false;
    } catch (error) {
      place.textContent = `The figure cannot be drawn: ${error.message}`;
      console.error(error);
    }
  }

  async function save(button) {
    const figure = button.closest("figure");
    const format = button.dataset.format;
    const link = document.createElement("a");
    link.href = await drawn.get(figure).view.toImageURL(format, 2);
    link.download = `${figure.closest("section").id}.${format}`;
    link.click();
  }

  for (const button of document.querySelectorAll(".save button")) {
    button.addEventListener("click", () => save(button));
  }

  // A long report draws a figure only when it is about to be seen.
  const near = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        if (isIntersecting && !drawn.has(target)) draw(target);
      }
    },
    { rootMargin: "800px" },
  );
  figures.forEach((figure) => near.observe(figure));

  const again = () => [...drawn.keys()].forEach(draw);
  dark.addEventListener("change", again);
  let width = window.innerWidth;
  let pause;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    clearTimeout(pause);
    pause = setTimeout(again, 150);
  });
  window.addEventListener("beforeprint", () => {
    figures.filter((figure) => !drawn.has(figure)).forEach(draw);
  });
})();
