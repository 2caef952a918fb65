import { quoteGo } from '../../document/go-json.js';
import { type DeprecationEntry, schemas } from '../../model/declarative-config.js';
import type { CheckedPackage } from './checked-package.js';

/**
 * Returns the fault of a reference, with the message of `opm`; undefined if valid. Adds the reference to `seen`.
 */
export function findReferenceFault(
  reference: DeprecationEntry['reference'],
  position: number,
  model: CheckedPackage,
  seen: Set<string>,
): { text: string; hint: string } | undefined {
  const { schema, name } = reference;
  const quoted = quoteGo(model.facts.name);
  const setSchema = `set reference.schema to ${schemas.package}, ${schemas.channel} or ${schemas.bundle}`;
  if (schema === '') {
    const text = `schema must be set for deprecation entry [${position}] for package ${quoted}`;
    return { text, hint: setSchema };
  }
  const dump = `declcfg.PackageScopedReference{Schema:${quoteGo(schema)}, Name:${quoteGo(name)}}`;
  const key = `${schema}/${name}`;
  if (seen.has(key)) {
    const text = `duplicate deprecation entry ${dump} for package ${quoted}`;
    return { text, hint: 'keep one entry for each reference' };
  }
  seen.add(key);
  if (schema === schemas.bundle) return findMissing('bundle', name, model);
  if (schema === schemas.channel) return findMissing('channel', name, model);
  if (schema !== schemas.package) {
    const referrer = `referenced by entry ${position} for package ${quoted}`;
    const text = `cannot deprecate object ${dump} ${referrer}: object schema unknown`;
    return { text, hint: setSchema };
  }
  if (name === '') return undefined;
  const text = `package name must be empty for deprecated package ${quoted} (specified ${quoteGo(name)})`;
  return { text, hint: 'remove reference.name' };
}

function findMissing(
  kind: 'bundle' | 'channel',
  name: string,
  model: CheckedPackage,
): { text: string; hint: string } | undefined {
  if (model[`${kind}s`].has(name)) return undefined;
  // A default channel without a blob is treated as a channel here.
  if (kind === 'channel' && name !== '' && name === model.facts.defaultChannel) return undefined;
  const near = model.nearest(`${kind}s`, name);
  return {
    text: `cannot deprecate ${kind} ${quoteGo(name)} for package ${quoteGo(model.facts.name)}: ${kind} not found`,
    hint: near === undefined ? `set it to a ${kind} of the package` : `use ${quoteGo(near)}`,
  };
}
