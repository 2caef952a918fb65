/** Splits the URL of a request; the path keeps its escapes. */
export function splitUrl(url: string): { path: string; query: URLSearchParams } {
  const mark = url.indexOf('?');
  const end = mark < 0 ? url.length : mark;
  return { path: url.slice(0, end), query: new URLSearchParams(url.slice(end)) };
}
