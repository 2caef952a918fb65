import { describe, expect, it } from 'vitest';
import { type Diagnostic, encodeDiagnostic } from '../../../../src/core/diagnostic.js';
import type { CatalogDiagnostic } from '../../../../src/model/catalog-diagnostic.js';
import { encodeGitHub } from '../../../../src/cli/reports/github.js';
import { encodeJUnit } from '../../../../src/cli/reports/junit.js';
import { encodeSarif } from '../../../../src/cli/reports/sarif.js';
import { reportOutput } from '../../../../src/cli/command/shared-flags.js';

const finding: CatalogDiagnostic = {
  severity: 'error',
  code: 'invalid',
  subject: 'spec.tag',
  problem: 'expected a tag, got ": 100%"',
  package: 'p',
  file: 'a,b:c%.yaml',
  line: 3,
  column: 7,
  hint: 'name a tag\r\n::error::not a command',
};

describe('cli/reports', () => {
  it('escapes annotations of GitHub: commas and colons in properties, line ends and percent signs everywhere', () => {
    expect(encodeGitHub([finding])).toBe(
      '::error file=a%2Cb%3Ac%25.yaml,line=3,col=7,title=invalid::' +
        'package "p": spec.tag: expected a tag, got ": 100%25"%0A' +
        'hint: name a tag\\x0d%0A::error::not a command\n',
    );
  });

  it('writes one annotation per finding, with as much of its place as is known', () => {
    const notice: Diagnostic = { severity: 'notice', code: 'icon', problem: 'has no icon' };
    expect(encodeGitHub([notice, { ...notice, severity: 'warning', file: 'f' }])).toBe(
      '::notice title=icon::has no icon\n::warning file=f,title=icon::has no icon\n',
    );
    expect(encodeGitHub([])).toBe('');
  });

  it('gives SARIF the rule, the region and the names of a finding', () => {
    const log = JSON.parse(
      encodeSarif([finding], [{ id: 'invalid', level: 'error', summary: 's' }], { name: 'n', version: 'v' }),
    ) as { runs: { results: unknown[] }[] };
    expect(log.runs[0]?.results).toMatchObject([
      {
        ruleId: 'invalid',
        ruleIndex: 0,
        level: 'error',
        locations: [
          {
            physicalLocation: {
              artifactLocation: { uri: 'a%2Cb%3Ac%25.yaml' },
              region: { startLine: 3, startColumn: 7 },
            },
            logicalLocations: [{ name: 'p', kind: 'package' }],
          },
        ],
      },
    ]);
  });

  it('makes a suite of JUnit of what is no catalog, named after the command', () => {
    const problem: Diagnostic = {
      severity: 'warning',
      code: 'damaged',
      subject: 'sha256:0',
      problem: 'short',
    };
    const xml = encodeJUnit([problem], { name: 'opmate archive verify', isFailure: () => true });
    expect(xml).toContain('<testsuite name="opmate archive verify" tests="1" failures="1"');
    expect(xml).toContain('<failure type="warning" message="sha256:0: short">');
  });

  it('writes the fields of a diagnostic and of its kind as data, and its message', () => {
    expect(Object.entries(encodeDiagnostic({ ...finding, path: ['spec', 'tag'] }))).toEqual([
      ['severity', 'error'],
      ['code', 'invalid'],
      ['subject', 'spec.tag'],
      ['problem', 'expected a tag, got ": 100%"'],
      ['message', 'spec.tag: expected a tag, got ": 100%"'],
      ['package', 'p'],
      ...Object.entries({ file: 'a,b:c%.yaml', line: 3, column: 7 }),
      ['path', ['spec', 'tag']],
      ['hint', finding.hint],
    ]);
  });

  it('writes no secrets into data', () => {
    const problem = 'GET https://user:secret@registry.test/v2/: 401';
    expect(JSON.stringify(encodeDiagnostic({ severity: 'error', code: 'x', problem }))).not.toContain(
      'secret',
    );
  });

  it('refuses unknown formats', () => {
    expect(() => reportOutput.parse?.('html', undefined, '--output')).toThrow(
      'invalid --output value "html", expected (text|json|yaml|sarif|junit|github)',
    );
  });
});
