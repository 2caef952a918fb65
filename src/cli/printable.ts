/**
 * Makes text from elsewhere fit to be shown: control characters, which could rewrite the terminal, become
 * `\xNN`. Tabs and line ends stay.
 */
export function printable(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, (character) => {
    return `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`;
  });
}

/** A number of things in words: `1 image`, `2 images`. */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
