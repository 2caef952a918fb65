import { mapConcurrent } from '../../core/concurrency.js';
import type { JsonObject } from '../../document/json.js';
import { ownManager } from '../field-managers.js';
import { type Kubectl, parseObjects } from '../kubectl.js';
import { type ObjectId, getId, toKey } from '../objects.js';

/** Verdict of the cluster on an object. */
export interface Rehearsal {
  /** Object as it would be; undefined if refused, or if an admission webhook does not support dry runs. */
  result: JsonObject | undefined;
  /** Errors other than conflicts. */
  errors: string[];
  /** Conflict with fields of other managers. */
  conflict: string | undefined;
}

/** Returns the flags of server-side apply. */
export function getFlags(validation: string, isForced: boolean): string[] {
  return [`--field-manager=${ownManager}`, validation, ...(isForced ? ['--force-conflicts'] : [])];
}

interface Rehearsed extends ObjectId {
  value: JsonObject;
}

const concurrency = 4;

/**
 * Applies objects as a dry run, and returns the verdict on each by key: all with one call, and one by one only if that
 * fails, as kubectl does not report which objects failed.
 */
export async function rehearse(
  kubectl: Kubectl,
  objects: readonly Rehearsed[],
  flags: readonly string[],
): Promise<Map<string, Rehearsal>> {
  if (objects.length === 0) return new Map();
  const all = await tryObjects(kubectl, objects, flags);
  if (all.errors.length === 0) {
    return new Map(
      all.results.map(
        (result) => [toKey(getId(result)), { result, errors: [], conflict: undefined }] as const,
      ),
    );
  }
  const single = await mapConcurrent(objects, concurrency, async (object) => {
    const { results, errors } = await tryObjects(kubectl, [object], flags);
    // Foreign webhooks with side effects do not support dry runs.
    const wrong = errors.filter((error) => !error.includes('does not support dry run'));
    const verdict: Rehearsal = {
      result: results[0],
      errors: wrong.filter((error) => !isConflict(error)),
      conflict: wrong.find(isConflict),
    };
    return [toKey(object), verdict] as const;
  });
  return new Map(single);
}

async function tryObjects(
  kubectl: Kubectl,
  objects: readonly Rehearsed[],
  flags: readonly string[],
): Promise<{ results: JsonObject[]; errors: string[] }> {
  const args = ['apply', '--server-side', '--dry-run=server', ...flags, '-o', 'json', '-f', '-'];
  const { stdout, errors } = await kubectl.run(args, { objects: objects.map(({ value }) => value) });
  return { results: errors.length === 0 ? parseObjects(stdout) : [], errors };
}

function isConflict(error: string): boolean {
  return /Apply failed with \d+ conflict/.test(error);
}
