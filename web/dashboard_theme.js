// Light, dark, or as the system is. A classic script, so that the page is never drawn in the wrong theme first.
document.documentElement.dataset.theme = localStorage.getItem('theme') ?? 'system';
