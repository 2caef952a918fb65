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

/** What is deprecated: a channel or bundle of a package, or, where neither is named, the package. */
export interface Deprecation {
  package: string;
  channel?: string | undefined;
  bundle?: string | undefined;
  /** What users are told; undefined to take a deprecation back. */
  message: string | undefined;
}

/**
 * Plans to write or change an entry of a package's `olm.deprecations`, or to take it out; the blob comes with its first
 * entry and goes with its last. No edit where all is as wanted. Throws OpmateError NOT_FOUND with the nearest name for
 * what is not there, INVALID for an empty message.
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
    return { edits: [edit], changes: [`${described} is not deprecated any more`] };
  }
  if (message.trim() === '') {
    throw new OpmateError('INVALID', 'a deprecation needs a message', {
      hint: 'add a message that describes what users should do',
    });
  }
  if (facts?.entries[index]?.message === message) return { edits: [], changes: [] };
  const changes = [
    index < 0 ? `${described} is deprecated` : `${described} is deprecated with another message`,
  ];
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
    throw new UsageError('--bundle and --channel cannot be used together', {
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

/** A package needs no name: it is the one whose blob this is. */
function isSame(a: DeprecationEntry['reference'], b: DeprecationEntry['reference']): boolean {
  return a.schema === b.schema && (a.schema === schemas.package || a.name === b.name);
}

function describe(packageName: string, { schema, name }: DeprecationEntry['reference']): string {
  const kind = schema === schemas.channel ? ', channel' : ', bundle';
  return `package ${quoteGo(packageName)}${schema === schemas.package ? '' : `${kind} ${quoteGo(name)}`}`;
}
