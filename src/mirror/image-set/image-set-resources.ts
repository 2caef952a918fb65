import path from 'node:path';
import { OpmateError, fileError } from '../../core/errors.js';
import { combineErrors } from '../../core/diagnostics-error.js';
import { quoteGo } from '../../document/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../../document/json.js';
import { parseYamlWithPlaces } from '../../document/yaml.js';
import { getObject } from '../../document/json-fields.js';
import { type LinkOptions, isWithin, requireWithin } from '../../files/directory-root.js';
import { readRegularFile } from '../../files/read-file.js';
import {
  type MirrorEntry,
  type MirrorSetKind,
  encodeCatalogSource,
  encodeClusterCatalog,
  encodeMirrorSets,
} from '../cluster-manifests.js';
import type { ImageSetLock } from '../lock/lock.js';
import {
  type MirroredRelease,
  type ReleaseSignatures,
  releaseResources,
} from '../release/release-resources.js';
import type { MirrorTarget } from './image-set-names.js';
import type { MirroredName, PlannedCatalog } from './image-set-plan.js';

export interface ClusterResourceOptions {
  target: MirrorTarget;
  /** ImageContentSourcePolicy for clusters that know nothing newer, instead of IDMS and ITMS. */
  icsp?: boolean | undefined;
  /** Stands before the name of every object, as `team-` in `team-idms-operator-0`. */
  prefix?: string | undefined;
  /** Name of CatalogSource and ClusterCatalog, where there is one catalog only; the prefix does not count then. */
  catalogName?: string | undefined;
  /** How often a cluster looks for another image behind the catalog's tag, in minutes. */
  pollIntervalMinutes?: number | undefined;
  /** Signatures of earlier runs, by digest of the release image. */
  signatures?: ReleaseSignatures | undefined;
  /** CatalogSource templates by the file that the configuration names, see `readCatalogSourceTemplates`. */
  templates?: ReadonlyMap<string, CatalogSourceTemplate> | undefined;
}

/** What was mirrored, as far as a cluster must know. */
export interface MirroredSet<T extends MirroredImage = MirroredImage> {
  images: readonly T[];
  catalogs: readonly MirroredCatalog[];
  /** Undefined for none. */
  releases?: readonly MirroredRelease[] | undefined;
}

export type MirroredImage = MirroredName;

export interface MirroredCatalog extends Pick<PlannedCatalog, 'destination' | 'name'> {
  /** Whether it is an index in a sqlite database, which OLM v1 does not read. */
  isDatabase?: boolean | undefined;
  operator: { catalog: string; targetCatalogSourceTemplate?: string | undefined };
}

const annotations = { createdBy: 'opmate' };

/**
 * The files that make a cluster use what a plan mirrors, by name: mirror sets, and for each catalog a
 * CatalogSource and a ClusterCatalog. Files without content are not there. Throws OpmateError for two catalogs
 * whose objects would have one name. (Source: oc-mirror v2; names are its own.)
 */
export function clusterResources(plan: MirroredSet, options: ClusterResourceOptions): Map<string, string> {
  const files = new Map<string, string>();
  const digests = (image: MirroredImage): boolean => image.reference.digest !== undefined;
  const tags = ({ reference: { tag, digest } }: MirroredImage): boolean =>
    tag !== undefined || digest === undefined;
  const add = (
    file: string,
    kind: MirrorSetKind,
    prefix: string,
    takes: (image: MirroredImage) => boolean,
  ) => {
    const text = encodeSets(plan, options, kind, (options.prefix ?? '') + prefix, takes);
    if (text !== '') files.set(file, text);
  };
  if (options.icsp === true) add('icsp-oc-mirror.yaml', 'ImageContentSourcePolicy', 'icsp', digests);
  else {
    add('idms-oc-mirror.yaml', 'ImageDigestMirrorSet', 'idms', digests);
    add('itms-oc-mirror.yaml', 'ImageTagMirrorSet', 'itms', tags);
  }
  for (const [file, text] of releaseResources(plan, options)) files.set(file, text);
  const owners = new Map<string, MirroredCatalog>();
  const { pollIntervalMinutes: minutes, catalogName, prefix = '' } = options;
  if (catalogName !== undefined && plan.catalogs.length > 1) {
    const problem = `${catalogName}: ${plan.catalogs.length} catalogs cannot have one name`;
    throw new OpmateError('INVALID', problem, {
      hint: 'remove the name, or mirror one catalog at a time',
    });
  }
  for (const catalog of plan.catalogs) {
    const suffix = getObjectSuffix(catalog, prefix);
    const other = owners.get(suffix);
    if (other !== undefined) {
      const problem = `cs-${suffix}: both ${other.operator.catalog} and ${catalog.operator.catalog} would have it`;
      const hint = 'set another targetCatalog or targetTag for one of them';
      throw new OpmateError('INVALID', problem, { hint });
    }
    owners.set(suffix, catalog);
    const image = catalog.destination;
    const template = options.templates?.get(catalog.operator.targetCatalogSourceTemplate ?? '');
    files.set(
      `cs-${suffix}.yaml`,
      encodeCatalogSource({
        name: catalogName ?? `${prefix}cs-${suffix}`,
        image,
        labels: template?.labels,
        annotations: { ...template?.annotations, ...annotations },
        pollInterval: minutes === undefined ? undefined : `${minutes}m`,
        spec: { ...template?.spec, image, sourceType: 'grpc' },
      }),
    );
    if (catalog.isDatabase === true) continue;
    files.set(
      `cc-${suffix}.yaml`,
      encodeClusterCatalog({
        name: catalogName ?? `${prefix}cc-${suffix}`,
        image,
        pollIntervalMinutes: minutes,
        annotations,
      }),
    );
  }
  return files;
}

/** Images that no cluster asks for by their names at the source. */
const unlistedKinds: readonly MirroredImage['kind'][] = ['catalog', 'chart', 'graph'];

/** The documents of one kind: images of their own first, as `generic`, then those of operators, then releases. */
function encodeSets(
  plan: MirroredSet,
  options: ClusterResourceOptions,
  kind: MirrorSetKind,
  prefix: string,
  takes: (image: MirroredImage) => boolean,
): string {
  const chosen = plan.images
    .flatMap((image) => [image, ...(image.aliases ?? []).map((reference) => ({ ...image, reference }))])
    .filter((image) => !unlistedKinds.includes(image.kind) && takes(image));
  const isRelease = ({ kind: of }: MirroredImage): boolean => of === 'release' || of === 'component';
  const isGeneric = ({ kind: of }: MirroredImage): boolean => of === 'additional' || of === 'helm';
  return [
    { name: `${prefix}-generic`, images: chosen.filter(isGeneric) },
    { name: `${prefix}-operator`, images: chosen.filter((image) => !isGeneric(image) && !isRelease(image)) },
    { name: `${prefix}-release`, images: chosen.filter(isRelease) },
  ]
    .map(({ name, images }) => {
      const entries = images.flatMap((image) => toMirrorEntry(image, options.target));
      return encodeMirrorSets(kind, entries, { name, annotations });
    })
    .join('');
}

/**
 * Where the path at the target ends with that at the source, one entry serves all of a namespace; not where paths may
 * have been shortened.
 */
function toMirrorEntry(
  { reference, repository }: MirroredImage,
  { registry, maxNestedPaths }: MirrorTarget,
): MirrorEntry[] {
  // What is in no registry is asked for by no other name than its new one.
  if (reference.transport !== 'docker') return [];
  const own = reference.repository;
  const source = `${reference.registry}/${own}`;
  const mirror = `${registry}/${repository}`;
  const isBelow = repository === own || repository.endsWith(`/${own}`);
  if (maxNestedPaths !== undefined || !isBelow) return [{ source, mirrors: [mirror] }];
  return [{ source: getParent(source), mirrors: [getParent(mirror)] }];
}

function getParent(name: string): string {
  return name.slice(0, name.lastIndexOf('/'));
}

/** Characters of a tag that go into the name of an object. */
const maxTagLength = 12;

/** The longest name of an object that becomes a label's value. */
const maxObjectName = 63;

/** Whether objects may be called so: a DNS label. */
export function isObjectName(text: string): boolean {
  return text.length <= maxObjectName && /^[a-z]([a-z0-9-]*[a-z0-9])?$/.test(text);
}

/** Whether names of objects may begin so, with room for the rest. */
export function isObjectPrefix(text: string): boolean {
  return text.length <= maxObjectName / 2 && /^[a-z][a-z0-9-]*$/.test(text);
}

/**
 * Returns what names the objects of a catalog behind `cs-` and `cc-`: the last part of its path at the target, which
 * `--max-nested-paths` may have joined, and the beginning of its tag, as a DNS label.
 */
function getObjectSuffix({ name: { tag }, destination }: MirroredCatalog, prefix: string): string {
  const last = destination.slice(destination.lastIndexOf('/') + 1, destination.lastIndexOf(':'));
  const label = (text: string): string => text.toLowerCase().replace(/[^a-z0-9-]/g, '-');
  const short = label(tag.slice(0, maxTagLength)) || '0';
  const room = maxObjectName - prefix.length - 'cs-'.length - short.length - 1;
  return `${label(last).slice(0, room)}-${short}`.replace(/-+$/, '');
}

/** What a CatalogSource template gives in addition to name, namespace, source type and image. */
export interface CatalogSourceTemplate {
  /** As it was read. */
  text: string;
  labels: Record<string, string> | undefined;
  annotations: Record<string, string> | undefined;
  spec: JsonObject;
}

/**
 * Reads the templates that a configuration names, by file as it is written there; relative paths count from
 * `directory`. Throws OpmateError, of all templates at fault, UNSAFE for a link that leads out of the directory unless
 * `followLinks`.
 */
export async function readCatalogSourceTemplates(
  operators: readonly { targetCatalogSourceTemplate?: string | undefined }[],
  { directory, followLinks }: { directory: string } & LinkOptions,
): Promise<Map<string, CatalogSourceTemplate>> {
  const templates = new Map<string, CatalogSourceTemplate>();
  const faults: OpmateError[] = [];
  for (const { targetCatalogSourceTemplate: file } of operators) {
    if (file === undefined || templates.has(file)) continue;
    try {
      const place = path.resolve(directory, file);
      const root = isWithin(directory, place) ? directory : path.dirname(place);
      await requireWithin(root, place, { label: file, followLinks });
      templates.set(file, readTemplate(await readTemplateFile(place, file), file));
    } catch (error) {
      if (!(error instanceof OpmateError)) throw error;
      faults.push(error);
    }
  }
  if (faults.length > 0) throw combineErrors(faults);
  return templates;
}

/**
 * The templates that a lock holds, by file as `readCatalogSourceTemplates` has them; no file is read. Throws OpmateError,
 * of all templates at fault: those of which the lock only has the path, and two under one name among them.
 */
export function templatesOfLock(lock: ImageSetLock, subject: string): Map<string, CatalogSourceTemplate> {
  const templates = new Map<string, CatalogSourceTemplate>();
  const faults: OpmateError[] = [];
  for (const { targetCatalogSourceTemplate: template } of lock.catalogs) {
    if (template === undefined) continue;
    const { file, text } = template;
    const name = `${subject}: template ${quoteGo(file)}`;
    const known = templates.get(file);
    if (text === undefined) {
      const hint = 'specify the configuration with --config to read its templates, or mirror to disk again';
      faults.push(new OpmateError('INVALID', 'only its path is in the lock', { subject: name, hint }));
    } else if (known === undefined) {
      try {
        templates.set(file, readTemplate(text, name));
      } catch (error) {
        if (!(error instanceof OpmateError)) throw error;
        faults.push(error);
      }
    } else if (known.text !== text)
      faults.push(new OpmateError('INVALID', 'duplicate, with other content', { subject: name }));
  }
  if (faults.length > 0) throw combineErrors(faults);
  return templates;
}

/** Throws OpmateError INVALID, of all, for templates that are not what a lock was made with. */
export function requireSameTemplates(
  lock: ImageSetLock,
  templates: ReadonlyMap<string, CatalogSourceTemplate>,
): void {
  const changed = lock.catalogs.flatMap(({ targetCatalogSourceTemplate: template }) => {
    const now = template && templates.get(template.file)?.text;
    return now === undefined || template?.text === undefined || now === template.text ? [] : [template.file];
  });
  if (changed.length === 0) return;
  const hint = 'mirror without --locked to create a new lock';
  const faults = [...new Set(changed)].map(
    (file) =>
      new OpmateError('INVALID', 'is not the template that the lock was made with', {
        subject: file,
        file,
        hint,
      }),
  );
  throw combineErrors(faults);
}

const maxTemplateBytes = 1024 * 1024;

async function readTemplateFile(place: string, file: string): Promise<string> {
  try {
    return String(await readRegularFile(place, maxTemplateBytes, { name: file }));
  } catch (error) {
    throw fileError(file, error, { file });
  }
}

function readTemplate(text: string, file: string): CatalogSourceTemplate {
  const fail = (problem: string): OpmateError => {
    const hint = 'use a CatalogSource without image, name and namespace';
    return new OpmateError('INVALID', problem, { subject: file, file, hint });
  };
  let value: JsonValue;
  try {
    ({ value } = parseYamlWithPlaces(text));
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    throw new OpmateError('SYNTAX', error.message, { subject: file, file, line: error.line });
  }
  const object = getObject(value);
  const { apiVersion, kind, spec = {}, metadata } = object;
  if (kind !== 'CatalogSource' || apiVersion !== 'operators.coreos.com/v1alpha1') {
    throw fail('not a CatalogSource of operators.coreos.com/v1alpha1');
  }
  if (!isJsonObject(spec)) throw fail('spec: expected an object');
  const { sourceType = '', configMap = '' } = spec;
  if (sourceType !== '' && sourceType !== 'grpc') throw fail('spec.sourceType: not grpc');
  if (configMap !== '') throw fail('spec.configMap: a mirrored catalog is an image');
  const meta = getObject(metadata);
  return { text, labels: toTexts(meta['labels']), annotations: toTexts(meta['annotations']), spec };
}

function toTexts(value: JsonValue | undefined): Record<string, string> | undefined {
  if (!isJsonObject(value)) return undefined;
  return Object.fromEntries(Object.entries(value).map(([key, text]) => [key, String(text)]));
}
