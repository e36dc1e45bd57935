// Sets the theme before the first paint. The content security policy allows no script inside the page.
(() => {
  let choice = "system";
  try {
    choice = localStorage.getItem("footplate.theme") ?? "system";
  } catch {
    // Storage is disabled: follow the system.
  }
  const isDark = choice === "dark" || (choice !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = isDark ? "dark" : "light";
})();
