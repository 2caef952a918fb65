import { useState } from 'preact/hooks';

const themes = ['auto', 'light', 'dark'] as const;
type Theme = (typeof themes)[number];
const signs: Record<Theme, string> = { auto: '◐', light: '☀', dark: '☾' };

/** Switch between the colors of the system, light and dark; stored in the browser if possible. */
export function ThemeSwitch() {
  const [theme, setTheme] = useState<Theme>(() => apply(load()));
  const next = themes[(themes.indexOf(theme) + 1) % themes.length] as Theme;
  const change = (): void => {
    save(next);
    setTheme(apply(next));
  };
  return (
    <button
      type="button"
      class="theme"
      onClick={change}
      aria-label={`Colors: ${theme}. Change to ${next}`}
      title={`Colors: ${theme}`}
    >
      <span aria-hidden="true">{signs[theme]}</span>
    </button>
  );
}

function apply(theme: Theme): Theme {
  if (theme === 'auto') document.documentElement.removeAttribute('data-theme');
  else document.documentElement.setAttribute('data-theme', theme);
  return theme;
}

function load(): Theme {
  try {
    const kept = localStorage.getItem('opmate-theme');
    return themes.find((theme) => theme === kept) ?? 'auto';
  } catch {
    return 'auto';
  }
}

function save(theme: Theme): void {
  try {
    localStorage.setItem('opmate-theme', theme);
  } catch {
    // Without storage, the choice lasts until the page is closed.
  }
}
