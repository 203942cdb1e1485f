// Names for what the theme leaves without one, for screen readers.
document.addEventListener("DOMContentLoaded", () => {
  for (const one of document.querySelectorAll("summary")) {
    if (!one.textContent.trim()) one.setAttribute("aria-label", "Pages beneath");
  }
  for (const one of document.querySelectorAll(".citation-list[role=list]")) one.removeAttribute("role");
});
