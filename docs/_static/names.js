// Names for what the theme leaves without one, for screen readers.
document.addEventListener("DOMContentLoaded", () => {
  for (const one of document.querySelectorAll("summary")) {
    if (!one.textContent.trim()) one.setAttribute("aria-label", "Pages beneath");
  }
  for (const one of document.querySelectorAll(".sphx-glr-thumbcontainer")) {
    const title = one.querySelector(".sphx-glr-thumbnail-title").textContent;
    one.querySelector("a").setAttribute("aria-label", title); // its own text is hidden
    one.querySelector("img").alt = `The picture of: ${title}`;
  }
  for (const one of document.querySelectorAll(".citation-list[role=list]")) one.removeAttribute("role");
});
