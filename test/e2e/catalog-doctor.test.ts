import { readFileSync } from 'node:fs';
import path from 'node:path';
import { Ajv } from 'ajv';
import { beforeAll, describe, expect, it } from 'vitest';
import { projectRoot, useSandbox } from '../support/command-line.js';
import { caseOf, widgetCatalog } from './catalogs.js';

const sandbox = useSandbox();
const schemaFile = path.join(projectRoot, 'schemas', 'catalog-doctor-output.schema.json');
const matchesSchema = new Ajv().compile(JSON.parse(readFileSync(schemaFile, 'utf8')) as object);

/** What SARIF 2.1.0 asks of the parts that are written. */
const matchesSarif = new Ajv().compile({
  type: 'object',
  required: ['version', 'runs'],
  additionalProperties: false,
  properties: {
    $schema: { type: 'string' },
    version: { const: '2.1.0' },
    runs: {
      type: 'array',
      items: {
        type: 'object',
        required: ['tool', 'results'],
        additionalProperties: false,
        properties: {
          columnKind: { enum: ['utf16CodeUnits', 'unicodeCodePoints'] },
          tool: {
            type: 'object',
            required: ['driver'],
            properties: {
              driver: {
                type: 'object',
                required: ['name', 'rules'],
                properties: {
                  name: { type: 'string' },
                  version: { type: 'string', minLength: 1 },
                  rules: {
                    type: 'array',
                    uniqueItems: true,
                    items: {
                      type: 'object',
                      required: ['id'],
                      properties: {
                        id: { type: 'string' },
                        shortDescription: { type: 'object', required: ['text'] },
                        defaultConfiguration: {
                          type: 'object',
                          properties: { level: { enum: ['none', 'note', 'warning', 'error'] } },
                        },
                      },
                    },
                  },
                },
              },
            },
          },
          results: {
            type: 'array',
            items: {
              type: 'object',
              required: ['message'],
              additionalProperties: false,
              properties: {
                ruleId: { type: 'string' },
                ruleIndex: { type: 'integer', minimum: 0 },
                level: { enum: ['none', 'note', 'warning', 'error'] },
                message: { type: 'object', required: ['text'], properties: { text: { type: 'string' } } },
                locations: {
                  type: 'array',
                  items: {
                    type: 'object',
                    additionalProperties: false,
                    properties: {
                      physicalLocation: {
                        type: 'object',
                        required: ['artifactLocation'],
                        properties: {
                          artifactLocation: { type: 'object', required: ['uri'] },
                          region: {
                            type: 'object',
                            properties: { startLine: { type: 'integer', minimum: 1 } },
                          },
                        },
                      },
                      logicalLocations: { type: 'array', uniqueItems: true, items: { type: 'object' } },
                    },
                  },
                },
              },
            },
          },
        },
      },
    },
  },
});

const badName = 'wid\u0001get<&"\'>.v1.1.0';
const sick = [
  { schema: 'olm.package', name: 'widget', defaultChannel: 'stable' },
  {
    schema: 'olm.channel',
    package: 'widget',
    name: 'stable',
    entries: [{ name: 'widget.v1.0.0', skips: [badName] }, { name: badName }],
  },
  ...['1.0.0', '1.1.0'].map((version) => ({
    schema: 'olm.bundle',
    package: 'widget',
    name: version === '1.0.0' ? 'widget.v1.0.0' : badName,
    image: `registry.test/widget:${version}`,
    properties: [{ type: 'olm.package', value: { packageName: 'widget', version } }],
    relatedImages: [{ name: '', image: `registry.test/widget:${version}` }],
  })),
];

interface Report {
  passed: boolean;
  counts: Record<string, number>;
  findings: { code: string; severity: string; message: string; file: string; line: number }[];
}

beforeAll(async () => {
  await sandbox.write({
    'sick dir/catalog.json': sick.map((blob) => `${JSON.stringify(blob, null, 2)}\n`).join(''),
    'valid/catalog.json': widgetCatalog,
    'cycle/catalog.json': caseOf('cycle').catalog,
  });
});

describe('opmate catalog doctor', () => {
  it('shows findings by package with location and hint, without control characters', async () => {
    const { code, stdout, stderr } = await sandbox.run(['catalog', 'doctor', 'sick dir']);
    expect({ code, stderr }).toEqual({ code: 3, stderr: '' });
    expect(stdout).toMatch(/^widget\n {2}warning csv-metadata: "widget\.v1\.0\.0": has neither/);
    expect(stdout).toContain('  warning head-not-highest: channel "stable", "widget.v1.0.0": its head');
    expect(stdout).toMatch(/^ {4}at sick dir\/catalog\.json:\d+$/m);
    expect(stdout).toMatch(/^ {4}hint: set .* as the head, or remove it: OLM v0 installs the head/m);
    expect(stdout).not.toContain('\u0001');
    expect(stdout).toMatch(/\n\d warnings, \d notices\n$/);
  });

  it('shows a package name with a line feed on one line', async () => {
    await sandbox.write({
      'odd/catalog.json': '{"schema":"olm.package","name":"a\\nb","defaultChannel":"c"}',
    });
    const { stdout } = await sandbox.run(['catalog', 'doctor', 'odd']);
    expect(stdout).toMatch(/^a\\x0ab\n {2}error invalid: /);
  });

  it('writes reproducible JSON that matches the published schema', async () => {
    const first = await sandbox.run(['catalog', 'doctor', 'sick dir', '-o', 'json']);
    const report = JSON.parse(first.stdout) as Report;
    expect(matchesSchema(report), JSON.stringify(matchesSchema.errors)).toBe(true);
    expect(report.passed).toBe(false);
    expect(report.counts['warning']).toBe(
      report.findings.filter(({ severity }) => severity === 'warning').length,
    );
    const lines = readFileSync(`${sandbox.work}/sick dir/catalog.json`, 'utf8').split('\n');
    const downgrade = report.findings.find(({ code }) => code === 'downgrade');
    expect(lines[(downgrade?.line ?? 0) - 1]).toContain(JSON.stringify(badName));
    expect((await sandbox.run(['catalog', 'doctor', 'sick dir', '-o', 'json'])).stdout).toBe(first.stdout);
  });

  it('writes SARIF with relative locations and a rule for each check', async () => {
    const { code, stdout } = await sandbox.run(['catalog', 'doctor', 'sick dir', '-o', 'sarif']);
    expect(code).toBe(3);
    const log = JSON.parse(stdout) as { runs: [SarifRun] };
    expect(matchesSarif(log), JSON.stringify(matchesSarif.errors)).toBe(true);
    const [{ tool, results }] = log.runs;
    expect(results.length).toBeGreaterThan(3);
    for (const { ruleId, ruleIndex, locations } of results) {
      expect(tool.driver.rules[ruleIndex]?.id).toBe(ruleId);
      const [{ physicalLocation }] = locations;
      expect(physicalLocation.artifactLocation.uri).toBe('sick%20dir/catalog.json');
      expect(physicalLocation.region.startLine).toBeGreaterThan(0);
    }
  });

  it('writes JUnit XML with the findings that fail the command as failures', async () => {
    const { stdout } = await sandbox.run(['catalog', 'doctor', 'sick dir', '-o', 'junit']);
    expect(stdout.startsWith('<?xml version="1.0" encoding="UTF-8"?>\n<testsuites ')).toBe(true);
    expect(stdout).not.toMatch(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/);
    expect(wellFormedFault(stdout)).toBeUndefined();
    const { counts } = JSON.parse(
      (await sandbox.run(['catalog', 'doctor', 'sick dir', '-o', 'json'])).stdout,
    ) as Report;
    expect(stdout.match(/<failure /g)).toHaveLength(counts['warning'] ?? 0);
    expect(stdout.match(/<system-out>/g)).toHaveLength(counts['notice'] ?? 0);
    const healthy = await sandbox.run([
      'catalog',
      'doctor',
      'valid',
      '--check',
      'unreachable',
      '-o',
      'junit',
    ]);
    expect(healthy.code).toBe(0);
    expect(healthy.stdout).toContain('tests="1" failures="0"');
    expect(wellFormedFault(healthy.stdout)).toBeUndefined();
  });

  it('shows the most severe findings first, and omits those below --severity', async () => {
    const other = JSON.stringify({ schema: 'olm.package', name: 'aaa', defaultChannel: 'stable' });
    await sandbox.write({
      'two/a.json': other,
      'two/w.json': sick.map((blob) => JSON.stringify(blob)).join(''),
    });
    const severitiesIn = async (...args: string[]): Promise<string[]> => {
      const { stdout } = await sandbox.run(['catalog', 'doctor', 'two', '-o', 'json', ...args]);
      return (JSON.parse(stdout) as Report).findings.map(({ severity }) => severity);
    };
    const all = await severitiesIn();
    const rank = ['error', 'warning', 'notice'];
    expect(all).toEqual([...all].sort((a, b) => rank.indexOf(a) - rank.indexOf(b)));
    expect(new Set(all)).toEqual(new Set(rank));
    expect(new Set(await severitiesIn('--severity', 'warning'))).toEqual(new Set(['error', 'warning']));
    expect(new Set(await severitiesIn('--severity', 'error'))).toEqual(new Set(['error']));
    const { stdout } = await sandbox.run(['catalog', 'doctor', 'two']);
    const shown = stdout.match(/^ {2}(error|warning|notice) /gm) ?? [];
    expect(shown.map((line) => line.trim())).toEqual(
      shown.map((line) => line.trim()).sort((a, b) => rank.indexOf(a) - rank.indexOf(b)),
    );
    const refused = await sandbox.run(['catalog', 'doctor', 'two', '--severity', 'fatal']);
    expect(refused.code).toBe(2);
  });

  it('fails from the selected severity on', async () => {
    const run = async (...args: string[]): Promise<number | null> =>
      (await sandbox.run(['catalog', 'doctor', 'sick dir', ...args])).code;
    expect(await run('--fail-on', 'error')).toBe(0);
    expect(await run('--check', 'bundle-image-tag')).toBe(0);
    expect(await run('--check', 'bundle-image-tag', '--fail-on', 'notice')).toBe(3);
    expect(await run('--skip-check', 'csv-metadata,head-not-highest,downgrade')).toBe(0);
    const nothing = await sandbox.run(['catalog', 'doctor', 'valid', '--check', 'unreachable']);
    expect(nothing).toEqual({ code: 0, stdout: 'no problems found\n', stderr: '' });
  });

  it('reports validation errors', async () => {
    const { code, stdout } = await sandbox.run(['catalog', 'doctor', 'cycle', '--fail-on', 'error']);
    expect(code).toBe(3);
    expect(stdout).toMatch(/^ {2}error invalid: package "widget" channel "/m);
  });

  it.each([
    [['--check', 'icons'], 'invalid --check value "icons", expected (invalid|'],
    [['--skip-check', 'unreachabel'], 'did you mean "unreachable"?'],
    [['--openshift', 'latest'], 'invalid OpenShift version "latest"'],
    [['--fail-on', 'never'], 'invalid --fail-on value "never"'],
    [['-o', 'xml'], 'invalid --output value "xml"'],
  ])('refuses %j', async (args, message) => {
    const { code, stdout, stderr } = await sandbox.run(['catalog', 'doctor', 'valid', ...args]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(message);
  });

  it('reports a missing catalog or package', async () => {
    const missing = await sandbox.run(['catalog', 'doctor', './nothing-there']);
    expect({ code: missing.code, stdout: missing.stdout }).toEqual({ code: 1, stdout: '' });
    expect(missing.stderr).toContain('./nothing-there');
    const other = await sandbox.run(['catalog', 'doctor', 'valid', '--package', 'gizmo']);
    expect(other.code).toBe(1);
    expect(other.stderr).toContain('package "gizmo" not found');
  });
});

interface SarifRun {
  tool: { driver: { rules: { id: string }[] } };
  results: {
    ruleId: string;
    ruleIndex: number;
    locations: [{ physicalLocation: { artifactLocation: { uri: string }; region: { startLine: number } } }];
  }[];
}

/** What keeps text from being XML of elements, attributes in double quotes and text; undefined for nothing. */
function wellFormedFault(xml: string): string | undefined {
  const open: string[] = [];
  const body = xml.replace(/^<\?xml[^?]*\?>/, '');
  const token = /<(\/?)([a-z-]+)((?: [a-z]+="[^"<]*")*)(\/?)>|([^<]+)/y;
  while (token.lastIndex < body.length) {
    const at = token.lastIndex;
    const [, end, name = '', values = '', empty, text = ''] = token.exec(body) ?? [];
    if (token.lastIndex === 0) return `neither element nor text: ${body.slice(at, at + 60)}`;
    if (/&(?!(amp|lt|gt|quot|#\d+);)/.test(values + text)) return `a bare ampersand: ${values + text}`;
    if (text !== '') continue;
    if (end === '/' && open.pop() !== name) return `${name} ends where it is not open`;
    if (end !== '/' && empty !== '/') open.push(name);
  }
  return open.length > 0 ? `not ended: ${open.join(', ')}` : undefined;
}
