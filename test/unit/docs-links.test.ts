import { existsSync, readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';

const root = path.resolve(import.meta.dirname, '../..');
const pages = readdirSync(root)
  .concat(
    readdirSync(path.join(root, 'docs'), { recursive: true, encoding: 'utf8' }).map((name) => `docs/${name}`),
  )
  .filter((name) => name.endsWith('.md'));

/** Returns a page without its blocks of code. */
function readProse(file: string): string {
  return readFileSync(file, 'utf8').replace(/^ *```.*\n[\s\S]*?^ *```$/gm, '');
}

/** Returns the anchors of the headings of a page, as GitHub and GitLab form them. */
function anchorsOf(file: string): string[] {
  return [...readProse(file).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

it.each(pages)('links to files and headings that exist: %s', (page) => {
  const file = path.join(root, page);
  const broken = [...readProse(file).matchAll(/\]\((?!https?:|mailto:)([^)\s]*)\)/g)].flatMap(
    ([, link = '']) => {
      const [target = '', anchor] = link.split('#');
      const linked = target === '' ? file : path.resolve(path.dirname(file), target);
      if (!existsSync(linked)) return [link];
      return anchor === undefined || anchorsOf(linked).includes(anchor) ? [] : [link];
    },
  );
  expect(broken).toEqual([]);
});
