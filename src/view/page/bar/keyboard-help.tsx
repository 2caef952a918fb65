import { useEffect, useRef } from 'preact/hooks';

const keys: readonly [
  title: string,
  rows: readonly (readonly [keys: readonly string[], effect: string])[],
][] = [
  [
    'Everywhere',
    [
      [['/'], 'search packages and bundles'],
      [['?'], 'show this help'],
      [['Esc'], 'close it'],
    ],
  ],
  [
    'In the graph',
    [
      [['↑', '↓'], 'previous, next row'],
      [['→', '←'], 'replaced bundle, replacing bundle; expand, collapse a minor version'],
      [['Page Up', 'Page Down'], 'ten rows up, down'],
      [['Home', 'End'], 'newest, oldest bundle'],
      [['Enter'], 'details of the bundle'],
      [['+', '−', '0'], 'larger, smaller, normal size'],
    ],
  ],
];

/** Button and key `?` for the list of keys. */
export function KeyboardHelp() {
  const dialog = useRef<HTMLDialogElement>(null);
  const show = (): void => {
    if (dialog.current?.open === false) dialog.current.showModal();
  };
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const isTyping = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
      if (event.key !== '?' || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      show();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  return (
    <>
      <button
        type="button"
        class="theme"
        onClick={show}
        aria-label="Keyboard shortcuts"
        title="Keyboard shortcuts ( ? )"
      >
        <span aria-hidden="true">?</span>
      </button>
      <dialog ref={dialog} class="keys" aria-labelledby="keys-title">
        <h2 id="keys-title">Keyboard shortcuts</h2>
        {keys.map(([title, rows]) => (
          <section key={title}>
            <h3>{title}</h3>
            <dl>
              {rows.map(([names, effect]) => (
                <div key={effect}>
                  <dt>
                    {names.map((name) => (
                      <kbd key={name}>{name}</kbd>
                    ))}
                  </dt>
                  <dd>{effect}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
        <form method="dialog">
          <button>Close</button>
        </form>
      </dialog>
    </>
  );
}
