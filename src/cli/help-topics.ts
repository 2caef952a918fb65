import { exitStatus, exitStatusNote } from './exit-codes.js';

/** Help topics by name: `opmate help versions`. */
export const helpTopics: Readonly<Record<string, string>> = {
  versions: `Version ranges, for --version of every command and in filter files:

  1.2.3               this version only
  >=1.2.0 <2.0.0      all comparisons must hold: = != > >= < <=
  1.0.0 || >=2.1.0    any of the groups must hold
  1.2.x               any patch of 1.2, also 1.2.* and 1.x

Ranges in catalogs (olm.skipRange, read by OLM v0 with the library blang/semver)
have these forms, with complete versions. OLM v1 (with Masterminds/semver) also
takes parts of versions and four more forms, and so does opmate:

  >=1.2, <2           a comma also joins comparisons
  ~1.2                >=1.2.0 <1.3.0
  ^1.2                >=1.2.0 <2.0.0
  1.2 - 1.4           >=1.2.0 <1.5.0

A range in a form of OLM v1 matches a pre-release such as 2.0.0-rc.1 only if the
range names a pre-release. Forms that both have are read like olm.skipRange by
"catalog filter" and like OLM v1 by "bundle resolve".
`,
  'exit-codes': `Exit codes:

${exitStatus.map(([code, meaning]) => `  ${code.padEnd(6)}${meaning}\n`).join('')}
${wrap(exitStatusNote)}
`,
};

/** Wraps text at 80 columns. */
function wrap(text: string): string {
  return text.replace(/(?![^\n]{1,80}$)([^\n]{1,80})\s/g, '$1\n');
}
