import type { CatalogFormat } from '../model/encode.js';
import { resolveMigrationLevel } from '../model/migrations.js';

/** Format of a written catalog. */
export interface CatalogOutput {
  /** Default `json`. */
  format?: CatalogFormat | undefined;
  /** Migration level by name; default none. */
  migrateLevel?: string | undefined;
}

/** Applies defaults. Throws UsageError for an unknown migration level. */
export function resolveOutput({ format = 'json', migrateLevel = '' }: CatalogOutput): {
  format: CatalogFormat;
  migrationLevel: string;
} {
  return { format, migrationLevel: resolveMigrationLevel(migrateLevel) };
}
