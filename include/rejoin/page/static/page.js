// Inside Airflow's UI: the page takes over its light or dark setting, and links to Airflow's own pages leave the frame.
// Without this file everything still works, with the system's colours.
(() => {
  if (window.parent === window) return;
  let outer;
  try {
    outer = window.parent.document;
  } catch {
    return; // a frame of another site: its pages are none of our business
  }
  const theirs = outer.documentElement;
  const follow = () => {
    document.documentElement.dataset.theme = theirs.classList.contains("dark") ? "dark" : "light";
  };
  follow();
  new MutationObserver(follow).observe(theirs, { attributes: true, attributeFilter: ["class"] });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-airflow]");
    if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    // The frame itself may not move the window, but a link of the window's own document may.
    Object.assign(outer.createElement("a"), { href: link.href }).click();
  });
})();
