import { type Diagnostic, formatMessage, formatLocation } from '../../core/diagnostic.js';
import { groupBy } from '../../core/groups.js';
import { getSubjects } from '../../model/catalog-diagnostic.js';

/**
 * Returns findings as JUnit XML: a suite per widest name, a case per finding. Findings that are no failures pass, with
 * their text as output; without findings, one case passes.
 */
export function encodeJUnit(
  items: readonly Diagnostic[],
  { name, isFailure }: { name: string; isFailure(diagnostic: Diagnostic): boolean },
): string {
  const suites = groupBy(items, (item) => getSubjects(item)[0]?.name ?? name);
  const failures = items.filter(isFailure).length;
  const tests = Math.max(items.length, 1);
  const lines = [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites${attributes({ name, tests, failures, errors: 0 })}>`,
  ];
  if (items.length === 0) {
    lines.push(
      `  <testsuite${attributes({ name, tests, failures, errors: 0 })}>`,
      `    <testcase${attributes({ name: 'no findings', classname: name })}/>`,
      '  </testsuite>',
    );
  }
  for (const [suite, list] of suites) {
    const count = list.filter(isFailure).length;
    lines.push(
      `  <testsuite${attributes({ name: suite, tests: list.length, failures: count, errors: 0 })}>`,
      ...list.flatMap((item) => toCase(item, suite, isFailure(item))),
      '  </testsuite>',
    );
  }
  lines.push('</testsuites>');
  return `${lines.join('\n')}\n`;
}

function toCase(item: Diagnostic, suite: string, isFailure: boolean): string[] {
  const { code, severity, hint, file, line } = item;
  const message = formatMessage(item);
  const subject = getSubjects(item)
    .slice(1)
    .map((entry) => `${entry.kind} ${entry.name}`)
    .join(' ');
  const name = subject === '' ? code : `${code}: ${subject}`;
  const place = file === undefined ? '' : `${formatLocation({ file, line })}: `;
  const text = escapeXml(`${place}${message}${hint === undefined ? '' : `\nhint: ${hint}`}`);
  return [
    `    <testcase${attributes({ name, classname: `${suite}.${code}`, file, line })}>`,
    isFailure
      ? `      <failure${attributes({ type: severity, message })}>${text}</failure>`
      : `      <system-out>${severity}: ${text}</system-out>`,
    '    </testcase>',
  ];
}

function attributes(values: Readonly<Record<string, string | number | undefined>>): string {
  return Object.entries(values)
    .filter(([, value]) => value !== undefined)
    .map(
      ([key, value]) =>
        ` ${key}="${escapeXml(String(value)).replace(/[\t\n\r]/g, (name) => `&#${name.charCodeAt(0)};`)}"`,
    )
    .join('');
}

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** Text for XML 1.0; characters that it cannot hold, such as controls, become U+FFFD. */
function escapeXml(text: string): string {
  return text
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, '\ufffd')
    .replace(/[&<>"]/g, (character) => entities[character] as string);
}
