// Draws the diagrams of a page in the colours of its theme, and again when the theme changes.
document.addEventListener("DOMContentLoaded", () => {
  const diagrams = [...document.querySelectorAll("pre.mermaid")];
  const texts = diagrams.map((diagram) => diagram.textContent);
  const wanted = matchMedia("(prefers-color-scheme: dark)");
  const draw = async () => {
    const theme = document.body.dataset.theme;
    const dark = theme === "dark" || (theme !== "light" && wanted.matches);
    mermaid.initialize({ startOnLoad: false, theme: dark ? "dark" : "neutral" });
    diagrams.forEach((diagram, number) => {
      diagram.removeAttribute("data-processed");
      diagram.textContent = texts[number];
    });
    await mermaid.run({ nodes: diagrams });
  };
  if (diagrams.length === 0) return;
  draw();
  wanted.addEventListener("change", draw);
  new MutationObserver(draw).observe(document.body, { attributeFilter: ["data-theme"] });
});
