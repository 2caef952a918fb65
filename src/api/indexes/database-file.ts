/** Databases of indexes as files, without their content. */
export { isDatabaseFile } from '../../sqlite/schema/database.js';
export { createDatabase, migrateDatabaseFile } from '../../sqlite/schema/edit.js';
export { latestVersion } from '../../sqlite/schema/schema.js';
