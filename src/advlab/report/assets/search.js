// Search, filters and the list of contents.
(() => {
  "use strict";
  const search = document.getElementById("search");

  // ---------------------------------------------------------------- one spelling for all

  // A letter has one name, whether it is typed as its symbol, its name or a short name; indices
  // and exponents stand on the line.
  const letters = Object.entries(JSON.parse(search?.dataset.letters ?? "{}"));
  const named = new Map();
  for (const [name, symbol] of letters) {
    const letter = symbol.toLowerCase();
    if (name.length > (named.get(letter) ?? "").length) named.set(letter, name.toLowerCase());
  }
  const short = new Map(letters.map(([name, symbol]) => [name.toLowerCase(), named.get(symbol.toLowerCase())]));
  const SYMBOLS = new RegExp(`[${[...named.keys()].join("")}]`, "g");
  const NAMES = new RegExp(`(?<![a-z])(${[...short.keys()].join("|")})(?![a-z])`, "g");
  const SIGNS = { "‖": "||", "∥": "||", "≤": "<=", "≥": ">=", "≠": "!=", "→": "->", "−": "-", "×": "x", "∼": "~" };
  Object.assign(SIGNS, { "∞": "inf", "√": "sqrt", "∇": "grad", "∑": "sum", "′": "'", "⟨": "<", "⟩": ">" });
  const SIGN = new RegExp(`[${Object.keys(SIGNS).join("")}]`, "g");

  function spelt(text) {
    return text
      .toLowerCase()
      .replace(SIGN, (sign) => SIGNS[sign])
      .normalize("NFKD")
      .replace(NAMES, (name) => short.get(name))
      .replace(SYMBOLS, (letter) => named.get(letter))
      .replace(/[\u0300-\u036f_^{}]/g, "");
  }

  // ---------------------------------------------------------------- search and filters

  const sections = [...document.querySelectorAll(".experiment")].map((section) => ({
    section,
    link: document.querySelector(`#index li[data-experiment="${section.id}"]`),
    cards: [...section.querySelectorAll(".card")],
  }));

  let spellings = null;
  function texts() {
    spellings ??= new Map(
      sections.flatMap(({ section, cards }) => {
        const parts = [".item", "h3", ".facts a", ".about"].map((part) => section.querySelector(part)?.textContent);
        return [
          [section, spelt([section.dataset.words, ...parts].join(" "))],
          ...cards.map((card) => [card, spelt(`${card.dataset.words} ${card.textContent}`)]),
        ];
      }),
    );
    return spellings;
  }

  const pressed = (name) =>
    [...document.querySelectorAll(`.choice[data-${name}][aria-pressed="true"]`)].map((one) => one.dataset[name]);

  function filter() {
    const words = spelt(search.value).split(/\s+/).filter(Boolean);
    const [outcomes, kinds] = [pressed("outcome"), pressed("kind")];
    const matches = (element) => words.every((word) => texts().get(element).includes(word));
    let [claims, experiments, all] = [0, 0, 0];
    for (const { section, link, cards } of sections) {
      const whole = matches(section);
      let kept = 0;
      for (const card of cards) {
        const right =
          (!outcomes.length || outcomes.includes(card.dataset.outcome)) &&
          (!kinds.length || kinds.includes(card.dataset.kind));
        card.hidden = !(right && (whole || matches(card)));
        kept += !card.hidden;
      }
      all += cards.length;
      claims += kept;
      const gone = !(kept || (whole && !outcomes.length && !kinds.length));
      section.hidden = gone;
      if (link) link.hidden = gone;
      experiments += !gone;
    }
    for (const group of document.querySelectorAll(".paper-links, .paper")) {
      // Lists of a docstring have <li> of their own.
      group.hidden = !group.querySelector("li[data-experiment]:not([hidden]), .experiment:not([hidden])");
    }
    document.querySelector(".nothing").hidden = experiments > 0;
    const narrowed = words.length || outcomes.length || kinds.length;
    document.querySelector(".found").textContent = narrowed
      ? `${claims} of ${all} claims in ${experiments} ${experiments === 1 ? "experiment" : "experiments"}`
      : "";
  }

  function clear() {
    search.value = "";
    document.querySelectorAll(".choice").forEach((one) => one.setAttribute("aria-pressed", "false"));
    filter();
  }

  // A count leads to the claims that it counts: of these alone the rest is hidden.
  function only({ onlyKind, onlyOutcome }) {
    search.value = "";
    for (const choice of document.querySelectorAll(".choice")) {
      const wanted = choice.dataset.kind === onlyKind || choice.dataset.outcome === onlyOutcome;
      choice.setAttribute("aria-pressed", String(wanted));
    }
    filter();
    document.querySelector(".card:not([hidden])").scrollIntoView({ block: "center" });
  }

  // The contents follow the reader, and the page itself does not move.
  const still = window.matchMedia("(prefers-reduced-motion: reduce)");
  function follow(link) {
    const index = document.getElementById("index");
    const side = [index, index.closest(".side")].find((one) => /auto|scroll/.test(getComputedStyle(one).overflowY));
    if (!side || !side.clientHeight) return;
    const finder = document.querySelector(".finder");
    const covered = side.contains(finder) ? finder.offsetHeight : 0; // it stays on top
    const [frame, item] = [side.getBoundingClientRect(), link.getBoundingClientRect()];
    if (item.top >= frame.top + covered && item.bottom <= frame.bottom) return;
    const top = side.scrollTop + item.top - frame.top - covered - (side.clientHeight - covered - item.height) / 2;
    side.scrollTo({ top, behavior: still.matches ? "instant" : "smooth" });
  }

  function showTarget() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    if (search && target.closest("[hidden]")) clear();
    for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    requestAnimationFrame(() => target.scrollIntoView());
  }

  if (search) {
    document.querySelector(".finder").hidden = false;
    let typing;
    search.addEventListener("input", () => {
      clearTimeout(typing);
      typing = setTimeout(filter, 120);
    });
    for (const choice of document.querySelectorAll(".choice")) {
      choice.addEventListener("click", () => {
        choice.setAttribute("aria-pressed", String(choice.getAttribute("aria-pressed") !== "true"));
        filter();
      });
    }
    for (const count of document.querySelectorAll("[data-only-kind]")) {
      count.addEventListener("click", (event) => {
        event.preventDefault();
        only(count.dataset);
      });
    }
    document.querySelector("[data-clear]").addEventListener("click", clear);
    document.addEventListener("keydown", (event) => {
      if (event.key === "/" && !event.target.closest("input, textarea")) {
        event.preventDefault();
        document.querySelector(".menu").open = true;
        search.focus();
      } else if (event.key === "Escape" && event.target === search) clear();
    });
    // Where there is no room beside the text, the contents are folded away.
    const roomy = window.matchMedia("(min-width: 64rem)");
    const fold = () => (document.querySelector(".menu").open = roomy.matches);
    fold();
    roomy.addEventListener("change", fold);
    document.getElementById("index").addEventListener("click", (event) => {
      if (!roomy.matches && event.target.closest("a")) document.querySelector(".menu").open = false;
    });
    const reading = new IntersectionObserver(
      (entries) => {
        for (const { target, isIntersecting } of entries) {
          const link = document.querySelector(`#index li[data-experiment="${target.id}"] a`);
          if (isIntersecting) link?.setAttribute("aria-current", "true");
          else link?.removeAttribute("aria-current");
          if (isIntersecting && link) follow(link);
        }
      },
      { rootMargin: "-20% 0px -75% 0px" },
    );
    sections.forEach(({ section }) => reading.observe(section));
  }
  // A scope is in the page once; a claim shows it when it is opened.
  function showScope({ target }) {
    const link = target.open && target.querySelector(":scope > dl > .scope > a");
    if (link) link.replaceWith(...document.getElementById(link.hash.slice(1)).cloneNode(true).childNodes);
  }
  document.addEventListener("toggle", showScope, true);
  window.addEventListener("hashchange", showTarget);
  if (location.hash) showTarget();
})();
