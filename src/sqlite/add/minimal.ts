import type { Database } from '../schema/database.js';

/** Matches bundles with manifests that head no channel of any package. */
const isHeadless = `(csv IS NOT NULL OR bundle IS NOT NULL) AND name NOT IN (
  SELECT head_operatorbundle_name FROM channel WHERE head_operatorbundle_name IS NOT NULL)`;

/**
 * Drops the manifests of all bundles that head no channel and can be pulled from their image; everything else stays,
 * so listing, resolving and mirroring still work. Returns the number of bundles changed.
 */
export function dropManifestsOfNonHeads(database: Database): number {
  return database.run(
    `UPDATE operatorbundle SET csv = NULL, bundle = NULL
     WHERE ${isHeadless}
       AND length(bundlepath) > 0`,
  ).changes;
}

/**
 * Returns the names of bundles that head no channel and keep their manifests because they have no image: those added
 * from directories.
 */
export function findManifestsWithoutImage(database: Database): string[] {
  return database.texts(
    `SELECT name FROM operatorbundle
     WHERE ${isHeadless}
       AND coalesce(length(bundlepath), 0) = 0
     ORDER BY name`,
  );
}
