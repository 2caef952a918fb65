import type { Spool, SpoolSlot } from '../../catalog/spool.js';
import type { SemverTemplate, TemplateImage } from '../../catalog/template/template.js';
import { formatMessage } from '../../core/diagnostic.js';
import { OpmateError, getMessage } from '../../core/errors.js';
import { type Version, parseVersion } from '../../core/semver.js';
import { parseGoJson, quoteGo } from '../../document/go-json.js';
import { getValue } from '../../document/json-fields.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../../document/json.js';
import type { YamlPath } from '../../document/yaml/full.js';
import { type SemverMember, buildSemverChannels, findVersionConflicts } from '../../graph/template-semver.js';
import { type PackageBlob, type PackageIcon, schemas } from '../../model/declarative-config.js';
import { decodePackage } from '../../model/decode.js';
import { describeBundle } from '../../model/describe.js';
import type { BundleFacts } from '../../model/facts.js';
import type { TemplateRun } from './template-run.js';

/** Adds the bundles of a semver template, and the channels that their versions make. */
export async function renderSemver(run: TemplateRun, template: SemverTemplate, spool: Spool): Promise<void> {
  const { bundles } = template;
  const rendered = new Map<string, { facts: BundleFacts; csv: SpoolSlot }>();
  await run.fetch(bundles, async (blob, csvText, [place]) => {
    const { image } = bundles[place] as TemplateImage;
    // The bundle that describes the package is known only after all are fetched.
    const csv = await spool.append(csvText ?? '');
    rendered.set(image, { facts: describeBundle(blob), csv });
    await run.assembly.addBundle(blob, place);
  });
  if (rendered.size === 0) {
    const problem = 'render: no bundles specified or no bundles could be rendered';
    run.fail([], problem, 'list bundles below candidate, fast or stable');
  }
  await run.errors.throwIfAny();
  const { members, packageName } = await readMembers(run, template, (image) => rendered.get(image)?.facts);
  const { channels, defaultChannel } = buildSemverChannels(packageName, members, template.generate);
  const head = channels.find(({ name }) => name === defaultChannel)?.entries?.at(-1)?.name;
  const inOrder = new Set(bundles.map(({ image }) => image));
  const renderedBundles = [...inOrder].flatMap((image) => rendered.get(image) ?? []);
  const csv = renderedBundles.find(({ facts }) => facts.name === head)?.csv;
  const csvText = csv === undefined ? '' : (await spool.read(csv)).toString();
  const blob: PackageBlob = {
    schema: schemas.package,
    name: packageName,
    defaultChannel,
    description: '',
    properties: [],
    ...readPackageMetadata(csvText),
  };
  await run.addEntry({ kind: 'package', blob }, 0);
  for (const channel of channels) await run.addEntry({ kind: 'channel', blob: channel }, 0);
  run.facts.bundles.push(...renderedBundles.map(({ facts }) => facts));
}

/** Reads the bundles of the lists with their versions; reports several packages and duplicates in a list. */
async function readMembers(
  run: TemplateRun,
  template: SemverTemplate,
  getFacts: (image: string) => BundleFacts | undefined,
): Promise<{ members: SemverMember[]; packageName: string }> {
  const context = 'render: unable to post-process bundle info: ';
  const members: (SemverMember & { path: YamlPath })[] = [];
  let packageName: string | undefined;
  const names = new Set<string>();
  for (const { archetype, image, path } of template.bundles) {
    const facts = getFacts(image);
    if (facts === undefined) continue;
    const { name, packageProperties: properties } = facts;
    const [propertyFault] = facts.propertyFaults;
    const [property] = properties;
    if (propertyFault !== undefined) {
      const problem = `parse properties for bundle ${quoteGo(name)}: ${formatMessage(propertyFault)}`;
      run.fail(path, context + problem);
      continue;
    }
    if (property === undefined || properties.length > 1) {
      const problem = `has multiple "olm.package" properties, expected exactly 1`;
      run.fail(path, `${context}bundle ${quoteGo(name)} ${problem}`);
      continue;
    }
    let version: Version;
    try {
      version = parseVersion(property.version);
    } catch (error) {
      const problem = `has invalid version ${quoteGo(property.version)}: ${getMessage(error)}`;
      const hint = 'use a semantic version: MAJOR.MINOR.PATCH';
      run.fail(path, `${context}bundle ${quoteGo(name)} ${problem}`, hint);
      continue;
    }
    packageName ??= property.packageName;
    if (property.packageName !== packageName) {
      const problem = `bundle ${quoteGo(property.packageName)} does not belong to this package: ${quoteGo(packageName)}`;
      run.fail(path, context + problem, `use bundles of one package: ${image} is ${name}`);
      continue;
    }
    if (names.has(`${archetype} ${name}`)) {
      run.fail(path, `${context}duplicate bundle name ${quoteGo(name)}`, `keep it once in ${archetype}`);
      continue;
    }
    names.add(`${archetype} ${name}`);
    members.push({ archetype, name, version, path });
  }
  for (const { member, message } of findVersionConflicts(members)) {
    const problem =
      'encountered bundle versions which differ only by build metadata, which cannot be ordered: ';
    run.fail(member.path, context + problem + message);
  }
  await run.errors.throwIfAny();
  return { members, packageName: packageName ?? '' };
}

/** Reads the package metadata of a ClusterServiceVersion: its description and first icon. */
function readPackageMetadata(csvText: string): Partial<Pick<PackageBlob, 'description' | 'icon'>> {
  const csv = csvText === '' ? null : parseGoJson(csvText);
  const spec = getValue(csv, 'spec');
  if (!isJsonObject(spec)) return {};
  const description = spec['description'];
  const icon = readFirstIcon(spec['icon']);
  return {
    ...(typeof description === 'string' && { description }),
    ...(icon !== undefined && { icon }),
  };
}

/** Returns the first icon of a list; undefined if any of them is invalid. */
function readFirstIcon(icons: JsonValue | undefined): PackageIcon | undefined {
  if (!Array.isArray(icons)) return undefined;
  try {
    return icons.map((icon) => decodePackage({ icon: icon ?? ({} as JsonObject) }).icon)[0];
  } catch (error) {
    if (error instanceof OpmateError) return undefined;
    throw error;
  }
}
