import type { Database } from '../schema/database.js';

/** Has manifests, and heads no channel of any package. */
const isHeadless = `(csv IS NOT NULL OR bundle IS NOT NULL) AND name NOT IN (
  SELECT head_operatorbundle_name FROM channel WHERE head_operatorbundle_name IS NOT NULL)`;

/**
 * Drops the manifests of every bundle that heads no channel of any package and that can be pulled from its
 * image; all else that the index has of it stays, so that listing, resolving and mirroring go on as before.
 * Returns how many lost theirs.
 */
export function dropManifestsOfNonHeads(database: Database): number {
  return database.run(
    `UPDATE operatorbundle SET csv = NULL, bundle = NULL
     WHERE ${isHeadless}
       AND length(bundlepath) > 0`,
  ).changes;
}

/**
 * Returns the names of bundles that head no channel and keep their manifests, because they have no image to be
 * pulled from: those that were added from directories.
 */
export function findManifestsWithoutImage(database: Database): string[] {
  return database.texts(
    `SELECT name FROM operatorbundle
     WHERE ${isHeadless}
       AND coalesce(length(bundlepath), 0) = 0
     ORDER BY name`,
  );
}
