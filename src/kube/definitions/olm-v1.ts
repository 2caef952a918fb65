import type { SchemaSource } from '../schema/schema.js';
import { clusterCatalogSchema } from './cluster-catalog.js';
import { clusterExtensionSchema } from './cluster-extension.js';
import { clusterObjectSetSchema } from './cluster-object-set.js';

/** Sets of definitions of OLM v1; `experimental` has ClusterObjectSets and more fields. */
export type DefinitionSet = 'standard' | 'experimental';

/** Fields of ClusterExtensions in the experimental definition only. */
const experimentalFields = ['config', 'progressDeadlineMinutes'];

const standardExtensionSchema: SchemaSource = {
  ...clusterExtensionSchema,
  properties: {
    ...clusterExtensionSchema.properties,
    spec: omitProperties(clusterExtensionSchema.properties?.['spec'] ?? {}, experimentalFields),
  },
};

function omitProperties(schema: SchemaSource, names: readonly string[]): SchemaSource {
  const properties = Object.entries(schema.properties ?? {}).filter(([name]) => !names.includes(name));
  return { ...schema, properties: Object.fromEntries(properties) };
}

const schemas: Readonly<Record<DefinitionSet, Readonly<Record<string, SchemaSource>>>> = {
  standard: { ClusterExtension: standardExtensionSchema, ClusterCatalog: clusterCatalogSchema },
  experimental: {
    ClusterExtension: clusterExtensionSchema,
    ClusterCatalog: clusterCatalogSchema,
    ClusterObjectSet: clusterObjectSetSchema,
  },
};

/** Returns the schema of a kind of `olm.operatorframework.io/v1`; undefined for others. */
export function findOlmV1Schema(kind: string, set: DefinitionSet): SchemaSource | undefined {
  return Object.hasOwn(schemas[set], kind) ? schemas[set][kind] : undefined;
}
