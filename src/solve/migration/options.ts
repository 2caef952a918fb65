/** Condition that a user accepts although it changes how an operator runs. */
export type Acknowledgment =
  | 'watch-scope-change'
  | 'operator-condition'
  | 'olmv0-api-access'
  | 'scoped-serviceaccount'
  | 'not-steady-state';

/** A check of an operator, in the words of the migration library. */
export interface MigrationCheck {
  name: string;
  passed: boolean;
  message: string;
}

/** Labels and annotations of the migration. (Source: library-olm, migration.) */
export const migrationKeys = {
  fromSubscription: 'olm.operatorframework.io/migrated-from-subscription',
  fromCatalogSource: 'olm.operatorframework.io/migrated-from-catalogsource',
  subscriptionBackup: 'olm.operatorframework.io/migration-subscription-backup',
  operatorGroupBackup: 'olm.operatorframework.io/migration-operatorgroup-backup',
  acknowledgedPrefix: 'olm.operatorframework.io/acknowledged-',
} as const;
