import { readFileSync } from 'node:fs';
import path from 'node:path';
import { Ajv } from 'ajv';
import { load } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { projectRoot } from '../../../support/command-line.js';

/** What the schema of a kind of template says of a text. */
function accepts(type: string, text: string): boolean {
  const file = path.join(projectRoot, 'schemas', `template-${type}.schema.json`);
  const schema = JSON.parse(readFileSync(file, 'utf8')) as object;
  return new Ajv({ strict: false }).compile(schema)(load(text));
}

const semver = 'schema: olm.semver\n';
const list = 'stable:\n  bundles:\n  - image: r/w:1\n';
const basic = 'schema: olm.template.basic\nentries:\n';
const substitutes = 'schema: olm.template.substitutes\nentries: []\nsubstitutions:\n';
const bundle = '- schema: olm.bundle\n  image: r/w:1\n';

describe('schemas of templates', () => {
  it.each([
    ['semver', semver + list],
    ['semver', `Schema: olm.semver\nGenerateMajorChannels: true\nCandidate:\n  Bundles:\n  - Image: r/w:1\n`],
    ['basic', basic + bundle],
    ['basic', `${basic}- schema: custom\n  any: thing\n`],
    ['basic', `${basic}- schema: olm.channel\n  package: w\n  name: a\n  entries: [{name: w.v1}]\n`],
    ['substitutes', `${substitutes}- name: r/w:2\n  base: w.v1\n`],
  ])('accept what is right in a %s template (%#)', (type, text) => {
    expect(accepts(type, text)).toBe(true);
  });

  it.each([
    ['semver', `${semver}${list}foo: 1\n`],
    ['semver', `${semver}stable:\n  bundles:\n  - image: r/w:1\n    name: x\n`],
    ['semver', `${semver}${list}generateMajorChannels: "true"\n`],
    ['semver', semver],
    ['semver', list],
    ['basic', `${basic}${bundle}  package: w\n`],
    ['basic', `${basic}- schema: olm.bundle\n`],
    ['basic', `${basic}- name: x\n`],
    ['basic', `${basic}${bundle}foo: 1\n`],
    ['substitutes', `${substitutes}- name: r/w:2\n`],
    ['substitutes', 'schema: olm.template.substitutes\nentries: []\n'],
  ])('refuse what is wrong in a %s template (%#)', (type, text) => {
    expect(accepts(type, text)).toBe(false);
  });
});
