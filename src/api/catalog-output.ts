import type { CatalogFormat } from '../model/encode.js';
import { resolveMigrationLevel } from '../model/migrations.js';

/** How a catalog is written. */
export interface CatalogOutput {
  /** Default `json`. */
  format?: CatalogFormat | undefined;
  /** Migration level by name; default none. */
  migrateLevel?: string | undefined;
}

/** Fills in what an output leaves out. Throws UsageError for an unknown migration level. */
export function resolveOutput({ format = 'json', migrateLevel = '' }: CatalogOutput): {
  format: CatalogFormat;
  migrationLevel: string;
} {
  return { format, migrationLevel: resolveMigrationLevel(migrateLevel) };
}
