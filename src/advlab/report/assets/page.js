(() => {
  "use strict";
  const [NARROWEST, WIDEST, GAP, EDGES] = [205, 440, 72, 84]; // of panels, in pixels
  const [BOLD, LETTER] = [7.2, 6.4]; // of letters in titles of panels and of axes
  const [LEGEND, LEGEND_ROW, BAR, OFFSET] = [7, 16, 37, 10]; // what stands above a panel
  const [TITLE_LINE, AXIS_LINE, LABELS, SLACK] = [16, 14, 18, 18]; // between two rows of panels
  const themes = JSON.parse(document.getElementById("themes").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const figures = [...document.querySelectorAll("figure")];
  const drawn = new Map();

  // ---------------------------------------------------------------- packed data

  async function unpacked(element) {
    const bytes = Uint8Array.from(atob(element.textContent), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }

  // Pictures stand in the drawing alone: the chart has their places there.
  function withPictures(figure) {
    const drawing = figure.querySelector(".chart").innerHTML;
    const pictures = [...new Set(drawing.match(/data:image\/png;base64,[A-Za-z0-9+/=]+/g))];
    return (text) => text.replace(/"picture:(\d+)"/g, (whole, place) => (pictures[place] ? `"${pictures[place]}"` : whole));
  }

  const charts = new Map();
  function chartOf(figure) {
    if (!charts.has(figure)) {
      charts.set(figure, unpacked(figure.querySelector("script")).then(withPictures(figure)).then(JSON.parse));
    }
    return charts.get(figure);
  }

  let library = null;
  function vega() {
    library ??= unpacked(document.getElementById("bundle")).then((text) => {
      const script = document.createElement("script");
      script.textContent = text;
      document.head.append(script);
    });
    return library;
  }

  // ---------------------------------------------------------------- figures

  // The legend of these panels takes as many rows as its names need; about 6 pixels a letter.
  function wrapLegend(panels, width) {
    const found = panels
      .flatMap(parts)
      .flatMap(({ encoding }) => [encoding?.color, encoding?.stroke])
      .filter((color) => color?.legend && Array.isArray(color.sort));
    const longest = Math.max(1, ...found.flatMap(({ sort }) => sort.map((name) => String(name).length)));
    const title = Math.max(0, ...found.map((color) => String(color.title ?? "").length));
    for (const { legend } of found) {
      legend.columns = Math.max(1, Math.floor((width - 6.5 * title - 10) / (6.3 * longest + 32)));
    }
  }

  const parts = (panel) => [panel, ...(panel.layer ?? []).flatMap(parts)];

  // A text, or its lines if it has more than so many letters.
  function lines(text, letters) {
    if (text.length <= letters) return text;
    const found = [];
    for (const word of text.split(/\s+/)) {
      const last = found.at(-1);
      if (last !== undefined && last.length + 1 + word.length <= Math.max(8, letters)) found[found.length - 1] = `${last} ${word}`;
      else found.push(word);
    }
    return found;
  }

  // Titles too long for their panel or axis are cut into lines; as in fitting.py.
  function wrapTitles(panel, width) {
    const text = panel.title?.text ?? panel.title;
    if (typeof text === "string") {
      panel.title = { ...(panel.title.text ? panel.title : {}), text: lines(text, (width + GAP / 2) / BOLD) };
    }
    for (const part of parts(panel)) {
      const height = part.height ?? panel.height ?? 210;
      for (const [axis, room] of [["x", width], ["y", height]]) {
        const encoding = part.encoding?.[axis];
        if (typeof encoding?.title === "string" && typeof room === "number") encoding.title = lines(encoding.title, room / LETTER);
      }
    }
  }

  function legendHeight(panel) {
    const shown = parts(panel)
      .flatMap(({ encoding }) => [encoding?.color, encoding?.fill, encoding?.stroke])
      .filter((color) => color?.field && color.legend !== null && !color.legend?.orient);
    if (!shown.length) return 0;
    const { sort, legend } = shown.find((color) => Array.isArray(color.sort)) ?? shown[0];
    if (!Array.isArray(sort)) return BAR;
    return LEGEND + LEGEND_ROW * Math.ceil(sort.length / (legend?.columns ?? sort.length));
  }

  // One height for the titles of a row: those above a smaller legend are moved up.
  function level(panels) {
    const tall = panels.map(legendHeight);
    const most = Math.max(...tall);
    panels.forEach((panel, at) => {
      if (!panel.title || tall[at] === most) return;
      const title = panel.title.text ? panel.title : { text: panel.title };
      panel.title = { ...title, offset: OFFSET + most - tall[at] };
    });
  }

  // The room that the axes of a row take, and below them the titles and legends of the next.
  const count = (title) => {
    if (title?.text) return count(title.text) + count(title.subtitle);
    return Array.isArray(title) ? title.length : title ? 1 : 0;
  };
  function between(upper, lower, apart) {
    const legends = apart ? Math.max(...lower.map(legendHeight)) : 0;
    const titles = Math.max(...lower.map((panel) => count(panel.title)));
    const above = legends + (titles ? OFFSET + TITLE_LINE * titles : 0);
    return Math.round(Math.max(...upper.map(below)) + above + SLACK);
  }

  function below(panel) {
    let found = 0;
    for (const { encoding } of parts(panel)) {
      const x = encoding?.x;
      if (!x || x.axis === null) continue;
      const longest = Math.max(0, ...(Array.isArray(x.sort) ? x.sort : []).map((name) => String(name).length));
      const slanted = LETTER * longest * Math.sin((Math.abs(x.axis?.labelAngle ?? 0) * Math.PI) / 180);
      const lines = count(x.title);
      found = Math.max(found, LABELS + slanted + (lines ? 8 + AXIS_LINE * lines : 0));
    }
    return found + Math.max(...parts(panel).map(legendBelow));
  }

  function legendBelow({ encoding }) {
    const found = Object.values(encoding ?? {}).find((one) => one?.legend?.orient === "bottom");
    return found ? 2 * LEGEND + LEGEND_ROW * (found.scale?.domain ?? found.sort ?? [""]).length : 0;
  }

  // Indices and exponents that have no small letter of their own, such as L_{rob}.
  const TYPED = /([_^])(?:\{([^{}<>]*)\}|(\p{L}|\*)(?![A-Za-z0-9]))|(?<=[ℓ‖|])(∞)/gu;
  function raisedText(text) {
    let [made, last, height] = ["", 0, 0];
    const add = (between) => {
      if (!between) return;
      made += height ? `<tspan dy="${-height}">${between}</tspan>` : between;
      height = 0;
    };
    for (const found of text.matchAll(TYPED)) {
      add(text.slice(last, found.index));
      const by = found[1] === "^" ? -4 : 3;
      made += `<tspan dy="${by - height}" font-size="75%">${found[2] ?? found[3] ?? found[4]}</tspan>`;
      [last, height] = [found.index + found[0].length, by];
    }
    add(text.slice(last));
    return made;
  }
  const raised = (svg) =>
    svg.replace(/(<(?:text|tspan)\b[^>]*>)([^<]+)(?=<\/(?:text|tspan)>)/g, (_, tag, text) => tag + raisedText(text));
  function raise(place) {
    for (const text of place.querySelectorAll("svg text")) {
      if (/[_^]|[ℓ‖|]∞/.test(text.textContent)) text.innerHTML = raised(`<text>${text.innerHTML}</text>`).slice(6, -7);
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
    const apart = spec.resolve?.scale?.color === "independent";
    for (const panel of panels ?? [spec]) {
      const resized = parts(panel).filter((part) => typeof part.width === "number");
      for (const part of resized) {
        // A panel to scale keeps its shape.
        if (panel.view?.style?.includes?.("to-scale")) part.height = Math.round((part.height * wide) / part.width);
        part.width = wide;
      }
      if (apart || !panels) wrapLegend([panel], apart ? wide : width - EDGES);
      if (resized.length) wrapTitles(panel, wide);
    }
    if (!panels) return spec;
    if (!apart) wrapLegend(panels, width - EDGES);
    const inRows = [];
    for (let start = 0; start < panels.length; start += row) inRows.push(panels.slice(start, start + row));
    if (apart) inRows.forEach(level);
    const { hconcat, ...rest } = spec;
    const fitted = { ...rest, concat: panels, columns: row };
    const rooms = inRows.slice(1).map((lower, at) => between(inRows[at], lower, apart));
    return rooms.length ? { ...fitted, spacing: { ...spec.spacing, row: Math.max(...rooms) } } : fitted;
  }

  // The drawing that stands in the file for readers without scripts.
  function still(figure) {
    const place = figure.querySelector(".chart");
    const kept = place.querySelector("noscript");
    if (kept && kept.textContent.startsWith("<svg")) place.innerHTML = kept.textContent;
  }

  async function draw(figure) {
    const before = drawn.get(figure);
    drawn.set(figure, null);
    const place = figure.querySelector(".chart");
    try {
      const chart = await chartOf(figure);
      await vega();
      let text = JSON.stringify(chart.spec);
      if (dark.matches) {
        for (const [colour, lifted] of Object.entries(themes.lifted)) {
          text = text.replaceAll(`"${colour}"`, `"${lifted}"`);
        }
      }
      const spec = fit(JSON.parse(text), place.clientWidth);
      spec.description = place.dataset.alt;
      before?.finalize();
      const embedded = await vegaEmbed(place, spec, {
        actions: false,
        renderer: "svg",
        config: dark.matches ? themes.dark : themes.light,
        tooltip: { theme: dark.matches ? "dark" : "light" },
      });
      raise(place);
      place.dataset.live = "";
      drawn.set(figure, embedded);
      figure.querySelector(".save").hidden = false;
    } catch (error) {
      place.textContent = `The figure cannot be drawn: ${error.message}`;
      console.error(error);
    }
  }

  // One figure at a time, so that a page can be scrolled and typed in meanwhile.
  let queue = Promise.resolve();
  const idle = window.requestIdleCallback ?? ((call) => setTimeout(call, 50));
  function drawLater(figure) {
    drawn.set(figure, null);
    queue = queue.then(() => new Promise((resolve) => idle(() => draw(figure).then(resolve), { timeout: 1000 })));
  }

  function saveFile(address, name) {
    const link = document.createElement("a");
    link.href = address;
    link.download = name;
    link.click();
  }

  async function save(button) {
    const figure = button.closest("figure");
    const format = button.dataset.format;
    const name = figure.dataset.file || figure.closest("section")?.id || "figure";
    const { view } = drawn.get(figure);
    const address =
      format === "svg"
        ? URL.createObjectURL(new Blob([raised(await view.toSVG())], { type: "image/svg+xml" }))
        : await view.toImageURL(format, 2);
    saveFile(address, `${name}.${format}`);
  }

  const shown = (value) =>
    typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(5)) : (value ?? "");

  async function toggleNumbers(button) {
    const figure = button.closest("figure");
    const place = figure.querySelector(".numbers");
    if (!place.firstChild) {
      const { spec, tables } = await chartOf(figure);
      for (const [title, data, columns] of tables) {
        const table = document.createElement("table");
        table.createCaption().textContent = title;
        const head = table.createTHead().insertRow();
        for (const [, name] of columns) {
          const cell = document.createElement("th");
          cell.scope = "col";
          cell.textContent = name;
          head.append(cell);
        }
        const body = table.createTBody();
        for (const row of spec.datasets[data]) {
          const line = body.insertRow();
          for (const [field] of columns) {
            const cell = line.insertCell();
            cell.textContent = shown(row[field]);
            if (typeof row[field] === "number") cell.className = "number";
          }
        }
        place.append(table);
      }
    }
    place.hidden = !place.hidden;
    button.setAttribute("aria-expanded", String(!place.hidden));
    button.textContent = place.hidden ? "Show the numbers" : "Hide the numbers";
  }

  for (const button of document.querySelectorAll(".save button")) {
    button.addEventListener("click", () => ("table" in button.dataset ? toggleNumbers(button) : save(button)));
  }

  // A long report draws a figure only when it is about to be seen: first as it stands in the file,
  // then to be pointed at, and as wide as the window is.
  const near = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        if (!isIntersecting || drawn.has(target)) continue;
        still(target);
        drawLater(target);
      }
    },
    { rootMargin: "600px" },
  );
  figures.forEach((figure) => near.observe(figure));

  const again = () => [...drawn.keys()].forEach(drawLater);
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
    figures.filter((figure) => !("live" in figure.querySelector(".chart").dataset)).forEach(still);
  });
})();
