// What the guides gain where scripts run: tabs, copying, a list of the page's parts, and search.
"use strict";

const NAMES = { bash: "curl", python: "Python", javascript: "JavaScript", typescript: "TypeScript" };
const FOUND_MAX = 12;

function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

// Links to an operation of before there were pages of them.
if (document.body.className === "reference" && location.hash.startsWith("#/")) location.replace(`try${location.hash}`);

// --- Samples: blocks of different languages that follow each other become tabs.

function remembered(language) {
  try {
    if (language) localStorage.setItem("language", language);
    return localStorage.getItem("language");
  } catch {
    return language; // Storage may be forbidden; then every page starts with the first tab.
  }
}

function show(language) {
  for (const group of document.querySelectorAll(".samples")) {
    const blocks = [...group.querySelectorAll("pre")];
    const shown = blocks.find((each) => each.dataset.language === language) || blocks[0];
    for (const each of blocks) each.hidden = each !== shown;
    for (const tab of group.querySelectorAll(".tabs button")) {
      tab.setAttribute("aria-pressed", tab.value === shown.dataset.language);
    }
  }
}

// The blocks from this one on, as long as each is in a language that has not come yet.
function group(first) {
  const blocks = [];
  for (let next = first; next?.matches("pre") && NAMES[next.dataset.language]; next = next.nextElementSibling) {
    if (blocks.some((each) => each.dataset.language === next.dataset.language)) break;
    blocks.push(next);
  }
  const tabs = make("div", { className: "tabs" });
  const samples = make("div", { className: "samples" }, tabs);
  first.before(samples);
  for (const block of blocks) {
    const language = block.dataset.language;
    const tab = make("button", { type: "button", value: language, textContent: NAMES[language] });
    tab.addEventListener("click", () => show(remembered(language) || language));
    tabs.append(tab);
    samples.append(block);
  }
}

function addCopy(block) {
  const button = make("button", { type: "button", className: "copy", textContent: "Copy" });
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(block.querySelector("code").textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  block.append(button);
}

const blocks = [...document.querySelectorAll("main pre[data-language]")];
for (const block of blocks) {
  if (NAMES[block.dataset.language] && !block.closest(".samples")) group(block);
  if (navigator.clipboard) addCopy(block); // Browsers have it on secure origins only.
}
show(remembered());

// --- The parts of this page, and the menu, which starts closed where it would push the text down.

const parts = [...document.querySelectorAll("main h2[id]")];
if (parts.length > 1) {
  const links = parts.map((each) => make("li", {}, make("a", { href: `#${each.id}`, textContent: each.textContent })));
  document.querySelector("aside").append(make("strong", { textContent: "On this page" }), make("ul", {}, ...links));
}
document.querySelector(".menu").open = window.matchMedia("(min-width: 60rem)").matches;

// --- Search: the pages themselves, read when somebody first searches.

const field = document.querySelector(".search input");
const list = document.querySelector(".search ol");
let entries = null;

function partsOf(html, url, page) {
  const found = [{ title: page, page, url, text: "" }];
  const main = new DOMParser().parseFromString(html, "text/html").querySelector("main");
  const codes = [...main.querySelectorAll("tr[id]")].map((row) =>
    ({ title: row.id, page, url: `${url}#${row.id}`, text: [...row.cells].map((each) => each.textContent).join(" ") }));
  for (const element of main.children) {
    if (/^H[23]$/.test(element.tagName) && element.id) {
      found.push({ title: element.textContent, page, url: `${url}#${element.id}`, text: "" });
    } else if (element.tagName !== "PRE") {
      found.at(-1).text += ` ${element.textContent}`;
    }
  }
  return [...found, ...codes];
}

async function read() {
  const [, ...links] = document.querySelectorAll("nav a"); // The first page only leads to the others.
  const pages = links.map(async (link) => partsOf(await (await fetch(link.href)).text(), link.href, link.textContent));
  return (await Promise.all(pages)).flat();
}

// Each word has to begin a word of the entry; one in a title counts more.
function score(entry, words) {
  const begins = (text, word) => new RegExp(`(^|[^a-z0-9])${word.replace(/[^a-z0-9]/g, "\\$&")}`, "i").test(text);
  const points = words.map((word) => (begins(entry.title, word) ? 10 : 0) + (begins(entry.text, word) ? 1 : 0));
  return points.includes(0) ? 0 : points.reduce((sum, each) => sum + each, 0);
}

function snippet(entry, word) {
  const text = entry.text.replace(/\s+/g, " ").trim();
  const at = Math.max(0, text.toLowerCase().indexOf(word) - 40);
  return (at ? "…" : "") + text.slice(at, at + 120);
}

async function search() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  list.hidden = words.length === 0;
  if (list.hidden) return;
  entries ??= read();
  const known = await entries;
  const found = known.map((entry) => ({ entry, points: score(entry, words) })).filter((each) => each.points > 0);
  found.sort((one, other) => other.points - one.points);
  list.replaceChildren(...found.slice(0, FOUND_MAX).map(({ entry }) =>
    make("li", {}, make("a", { href: entry.url },
      make("b", { textContent: entry.title }), make("small", { textContent: entry.page }),
      make("span", { textContent: snippet(entry, words[0]) })))));
  if (!found.length) list.append(make("li", { className: "none", textContent: "Nothing found." }));
}

field.addEventListener("input", search);
field.addEventListener("keydown", (event) => {
  if (event.key === "Enter") list.querySelector("a")?.click();
  if (event.key === "ArrowDown") list.querySelector("a")?.focus();
  if (event.key === "Escape") { field.value = ""; list.hidden = true; }
});
list.addEventListener("click", () => { list.hidden = true; });
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.target.closest("input, textarea, select")) {
    event.preventDefault();
    field.focus();
  }
});
