// What a person would not like of a page, as sentences: run in the page by test_page_looks.py, and returned to it.
const faults = [];
const page = document.documentElement;
const words = (element) => `${element.tagName.toLowerCase()} ${JSON.stringify(element.textContent.trim().slice(0, 50))}`;
const apart = (a, b) => a.right <= b.left + 1 || b.right <= a.left + 1 || a.bottom <= b.top + 2 || b.bottom <= a.top + 2;

// Nothing reaches beyond the page, but what can be moved sideways within it.
if (page.scrollWidth > page.clientWidth) faults.push(`the page is ${page.scrollWidth - page.clientWidth} pixels too wide`);
const moves = (element) => element && (["auto", "scroll"].includes(getComputedStyle(element).overflowX) || moves(element.parentElement));
for (const element of document.querySelectorAll("body *")) {
  const place = element.getBoundingClientRect();
  if (place.width && place.right > page.clientWidth + 1 && !moves(element.parentElement)) faults.push(`reaches beyond the page: ${words(element)}`);
}

// Texts of a picture keep apart, stay in their boxes, are whole and can be read.
for (const picture of document.querySelectorAll("svg[viewBox]:not(.spark)")) {
  const texts = [...picture.querySelectorAll("text")].map((element) => [element, element.getBoundingClientRect()]);
  texts.forEach(([one, place], at) => {
    for (const [other, theirs] of texts.slice(at + 1)) if (!apart(place, theirs)) faults.push(`on top of each other: ${words(one)}, ${words(other)}`);
    if (one.textContent.endsWith("…")) faults.push(`cut off: ${words(one)}`);
    if (place.height < 8.5) faults.push(`${place.height} pixels high: ${words(one)}`);
  });
  for (const box of picture.querySelectorAll(".box")) {
    const edge = box.querySelector("rect").getBoundingClientRect();
    for (const [text, place] of texts) {
      const inside = place.left >= edge.left && place.right <= edge.right && place.top >= edge.top && place.bottom <= edge.bottom;
      if (box.contains(text) ? !inside : !apart(place, edge)) faults.push(`crosses the edge of a box: ${words(text)}`);
    }
  }
}

// Every text stands out from what is behind it (WCAG AA: 4.5).
const numbers = (colour) => colour.match(/[\d.]+/g).map(Number);
const light = (colour) => {
  const parts = numbers(colour).slice(0, 3).map((part) => part / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
};
const behind = (element) => {
  const box = element.closest(".box");
  if (box) return getComputedStyle(box.querySelector("rect")).fill;
  for (let at = element; at; at = at.parentElement) {
    const colour = getComputedStyle(at).backgroundColor;
    if (numbers(colour)[3] !== 0) return colour;
  }
  return getComputedStyle(document.body).backgroundColor;
};
for (const element of document.querySelectorAll("body *")) {
  const own = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.textContent.trim());
  if (!own || element.closest("title, script, svg title")) continue;
  const style = getComputedStyle(element);
  const [a, b] = [light(element.closest("svg") ? style.fill : style.color), light(behind(element))].sort((x, y) => y - x);
  if ((a + 0.05) / (b + 0.05) < 4.5) faults.push(`contrast of only ${((a + 0.05) / (b + 0.05)).toFixed(1)}: ${words(element)}`);
}
return faults;
