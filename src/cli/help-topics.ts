import { exitStatus, exitStatusNote } from './exit-codes.js';

/** Help topics by name: `opmate help versions`. */
export const helpTopics: Readonly<Record<string, string>> = {
  versions: `Version ranges, for --version of "list bundles", "catalog filter" and
"bundle resolve", and for filter files:

  1.2.3               this version only
  >=1.2.0 <2.0.0      all comparisons must match: = != > >= < <=
  1.0.0 || >=2.1.0    any of the groups must match
  1.2.x               any patch version of 1.2; also 1.2.* and 1.x

OLM v0 reads olm.skipRange with the library blang/semver, which accepts these
forms with complete versions only. OLM v1 uses Masterminds/semver, which also
accepts partial versions and the following forms. opmate accepts all of them:

  >=1.2, <2           a comma also joins comparisons
  ~1.2                >=1.2.0 <1.3.0
  ^1.2                >=1.2.0 <2.0.0
  1.2 - 1.4           >=1.2.0 <1.5.0

A range in a form of OLM v1 matches a prerelease such as 2.0.0-rc.1 only if the
range contains a prerelease. In a form that both libraries accept, "bundle
resolve" excludes prereleases in the same way; "catalog filter" and "list
bundles" match them by precedence, as OLM v0 does.
`,
  'exit-codes': `Exit codes:

${exitStatus.map(([code, meaning]) => `  ${code.padEnd(6)}${meaning}\n`).join('')}
${wrap(exitStatusNote)}
`,
};

function wrap(text: string): string {
  return text.replace(/(?![^\n]{1,80}$)([^\n]{1,80})\s/g, '$1\n');
}
