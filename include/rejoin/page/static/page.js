// Two things that the pages can do without: they look again while a run is going on, and inside Airflow's UI they take over
// its light or dark setting, and links to Airflow's own pages leave the frame.
(() => {
  const AGAIN = 2000;
  const look = async () => {
    const parts = document.querySelectorAll("[data-live]");
    if (!parts.length) return;
    try {
      if (!document.hidden) {
        const answer = await fetch(window.location.href);
        if (answer.ok) {
          const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
          for (const part of parts) {
            const other = fresh.getElementById(part.id);
            if (other) part.replaceWith(document.adoptNode(other));
          }
        }
      }
    } catch {
      // the server is away: the next look may find it
    }
    window.setTimeout(look, AGAIN);
  };
  document.addEventListener("DOMContentLoaded", () => window.setTimeout(look, AGAIN));
})();
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
