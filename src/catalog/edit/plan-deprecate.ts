import { notFound } from '../../core/suggest.js';
import { OpmateError, UsageError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import type { JsonObject, JsonValue } from '../../document/json.js';
import { isJsonObject } from '../../document/json.js';
import { type DeprecationEntry, schemas } from '../../model/declarative-config.js';
import { listAt, withField } from '../selection/kept-catalog.js';
import type { PackageModel } from '../../graph/package-model.js';
import type { BlobEdit } from './blob-edits.js';
import type { EditableCatalog } from './editable-catalog.js';
import { type EditPlan, requireBlob, requirePackage } from './find-named.js';

/** Deprecated channel or bundle of a package, or the package if neither is set. */
export interface Deprecation {
  package: string;
  channel?: string | undefined;
  bundle?: string | undefined;
  /** Message for users; undefined to remove a deprecation. */
  message: string | undefined;
}

/**
 * Plans to add, change or remove an entry of a package's `olm.deprecations`; the blob is added with its first entry
 * and removed with its last. No edits if nothing changes. Throws OpmateError NOT_FOUND with the nearest name, INVALID
 * for an empty message.
 */
export function planDeprecate(catalog: EditableCatalog, deprecation: Deprecation): EditPlan<BlobEdit> {
  const { package: name, message } = deprecation;
  const model = requirePackage(catalog, name);
  const reference = referenceTo(model, deprecation);
  const described = describe(name, reference);
  const [facts] = model.deprecations;
  const index = facts?.entries.findIndex((entry) => isSame(entry.reference, reference)) ?? -1;
  const blob = facts === undefined ? undefined : requireBlob(catalog, schemas.deprecations, name);
  if (message === undefined) {
    if (facts === undefined || blob === undefined || index < 0) {
      throw new OpmateError('NOT_FOUND', `${described} is not deprecated`);
    }
    const change = (value: JsonObject): JsonObject =>
      withField(value, 'entries', listAt(value, 'entries').toSpliced(index, 1));
    const edit: BlobEdit =
      facts.entries.length === 1 ? { kind: 'remove', blob } : { kind: 'change', blob, change };
    return { edits: [edit], changes: [`${described}: no longer deprecated`] };
  }
  if (message.trim() === '') {
    throw new OpmateError('INVALID', 'missing deprecation message', {
      hint: 'add a message that describes what users should do',
    });
  }
  if (facts?.entries[index]?.message === message) return { edits: [], changes: [] };
  const changes = [index < 0 ? `${described}: deprecated` : `${described}: changed the deprecation message`];
  if (blob === undefined) {
    const entries: DeprecationEntry[] = [{ reference, message }];
    const item = { schema: schemas.deprecations, package: name, entries };
    return {
      edits: [{ kind: 'insert', package: name, item: { kind: 'deprecations', blob: item } }],
      changes,
    };
  }
  const change = (value: JsonObject): JsonObject => {
    const list = listAt(value, 'entries');
    const { schema, name: named } = reference;
    const old = list[index];
    const entry: JsonValue = isJsonObject(old)
      ? withField(old, 'message', message)
      : { reference: { schema, ...(named !== '' && { name: named }) }, message };
    return withField(value, 'entries', index < 0 ? [...list, entry] : list.with(index, entry));
  };
  return { edits: [{ kind: 'change', blob, change }], changes };
}

function referenceTo(
  { facts, channels, bundles }: PackageModel,
  { channel, bundle }: Deprecation,
): DeprecationEntry['reference'] {
  const subject = `package ${quoteGo(facts.name)}`;
  if (channel !== undefined && bundle !== undefined) {
    throw new UsageError('options.bundle and options.channel cannot be used together', {
      hint: 'deprecate one bundle at a time',
    });
  }
  if (channel !== undefined && !channels.has(channel)) {
    throw notFound('channel', channel, channels.keys(), { scope: subject });
  }
  if (bundle !== undefined && !bundles.has(bundle)) {
    throw notFound('bundle', bundle, bundles.keys(), { scope: subject });
  }
  if (channel !== undefined) return { schema: schemas.channel, name: channel };
  return bundle === undefined
    ? { schema: schemas.package, name: '' }
    : { schema: schemas.bundle, name: bundle };
}

/** Compares references; that of the package needs no name. */
function isSame(a: DeprecationEntry['reference'], b: DeprecationEntry['reference']): boolean {
  return a.schema === b.schema && (a.schema === schemas.package || a.name === b.name);
}

function describe(packageName: string, { schema, name }: DeprecationEntry['reference']): string {
  const kind = schema === schemas.channel ? ', channel' : ', bundle';
  return `package ${quoteGo(packageName)}${schema === schemas.package ? '' : `${kind} ${quoteGo(name)}`}`;
}
