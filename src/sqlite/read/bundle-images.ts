import type { Database } from '../schema/database.js';

/** A bundle of an index by its image. */
export interface BundleOfImage {
  name: string;
  package: string;
  version: string;
}

/** Returns the bundles in channels, by image. */
export function listBundleImages(database: Database): Map<string, BundleOfImage> {
  const rows = database.textRows<'image' | 'name' | 'package' | 'version'>(
    `SELECT DISTINCT bundlepath AS image, name, COALESCE(version, '') AS version, package_name AS package
      FROM operatorbundle JOIN channel_entry ON operatorbundle_name = name
      WHERE bundlepath <> '' AND package_name IS NOT NULL ORDER BY name`,
  );
  return new Map(rows.map(({ image, ...bundle }) => [image, bundle]));
}
