import type { SchemaSource } from '../schema/schema.js';

/** Schema of ClusterExtension without its status. (Source: API of operator-controller, Apache-2.0.) */
export const clusterExtensionSchema: SchemaSource = {
  properties: {
    apiVersion: { type: 'string' },
    kind: { type: 'string' },
    metadata: { type: 'object' },
    spec: {
      properties: {
        config: {
          properties: {
            configType: { enum: ['Inline'], type: 'string' },
            inline: { minProperties: 1, type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
          },
          required: ['configType'],
          type: 'object',
          'x-kubernetes-validations': [
            {
              message: 'inline is required when configType is Inline, and forbidden otherwise',
              rule: "has(self.configType) && self.configType == 'Inline' ?has(self.inline) : !has(self.inline)",
            },
          ],
        },
        install: {
          properties: {
            preflight: {
              properties: {
                crdUpgradeSafety: {
                  properties: { enforcement: { enum: ['None', 'Strict'], type: 'string' } },
                  required: ['enforcement'],
                  type: 'object',
                },
              },
              required: ['crdUpgradeSafety'],
              type: 'object',
              'x-kubernetes-validations': [
                {
                  message: 'at least one of [crdUpgradeSafety] are required when preflight is specified',
                  rule: 'has(self.crdUpgradeSafety)',
                },
              ],
            },
          },
          type: 'object',
          'x-kubernetes-validations': [
            {
              message: 'at least one of [preflight] are required when install is specified',
              rule: 'has(self.preflight)',
            },
          ],
        },
        namespace: {
          maxLength: 63,
          type: 'string',
          'x-kubernetes-validations': [
            { message: 'namespace is immutable', rule: 'self == oldSelf' },
            {
              message: 'namespace must be a valid DNS1123 label',
              rule: 'self.matches("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")',
            },
          ],
        },
        progressDeadlineMinutes: { format: 'int32', maximum: 720, minimum: 10, type: 'integer' },
        serviceAccount: {
          minProperties: 1,
          properties: {
            name: {
              maxLength: 253,
              minLength: 1,
              type: 'string',
              'x-kubernetes-validations': [
                { message: 'name is immutable once set but may be cleared', rule: 'self == oldSelf' },
                {
                  message:
                    'name must be a valid DNS1123 subdomain. It must contain only lowercase alphanumeric characters, hyphens (-) or periods (.), start and end with an alphanumeric character, and be no longer than 253 characters',
                  rule: 'self.matches("^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")',
                },
              ],
            },
          },
          type: 'object',
        },
        source: {
          properties: {
            catalog: {
              properties: {
                channels: {
                  items: {
                    maxLength: 253,
                    type: 'string',
                    'x-kubernetes-validations': [
                      {
                        message: 'channels entries must be valid DNS1123 subdomains',
                        rule: 'self.matches("^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")',
                      },
                    ],
                  },
                  maxItems: 256,
                  type: 'array',
                },
                packageName: {
                  maxLength: 253,
                  type: 'string',
                  'x-kubernetes-validations': [
                    { message: 'packageName is immutable', rule: 'self == oldSelf' },
                    {
                      message:
                        'packageName must be a valid DNS1123 subdomain. It must contain only lowercase alphanumeric characters, hyphens (-) or periods (.), start and end with an alphanumeric character, and be no longer than 253 characters',
                      rule: 'self.matches("^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")',
                    },
                  ],
                },
                selector: {
                  properties: {
                    matchExpressions: {
                      items: {
                        properties: {
                          key: { type: 'string' },
                          operator: { type: 'string' },
                          values: {
                            items: { type: 'string' },
                            type: 'array',
                            'x-kubernetes-list-type': 'atomic',
                          },
                        },
                        required: ['key', 'operator'],
                        type: 'object',
                      },
                      type: 'array',
                      'x-kubernetes-list-type': 'atomic',
                    },
                    matchLabels: { additionalProperties: { type: 'string' }, type: 'object' },
                  },
                  type: 'object',
                  'x-kubernetes-map-type': 'atomic',
                },
                upgradeConstraintPolicy: {
                  default: 'CatalogProvided',
                  enum: ['CatalogProvided', 'SelfCertified'],
                  type: 'string',
                },
                version: {
                  maxLength: 64,
                  type: 'string',
                  'x-kubernetes-validations': [
                    {
                      message: 'invalid version expression',
                      rule: 'self.matches("^(\\\\s*(=||!=|>|<|>=|=>|<=|=<|~|~>|\\\\^)\\\\s*(v?(0|[1-9]\\\\d*|[x|X|\\\\*])(\\\\.(0|[1-9]\\\\d*|x|X|\\\\*]))?(\\\\.(0|[1-9]\\\\d*|x|X|\\\\*))?(-([0-9A-Za-z\\\\-]+(\\\\.[0-9A-Za-z\\\\-]+)*))?(\\\\+([0-9A-Za-z\\\\-]+(\\\\.[0-9A-Za-z\\\\-]+)*))?)\\\\s*)((?:\\\\s+|,\\\\s*|\\\\s*\\\\|\\\\|\\\\s*)(=||!=|>|<|>=|=>|<=|=<|~|~>|\\\\^)\\\\s*(v?(0|[1-9]\\\\d*|x|X|\\\\*])(\\\\.(0|[1-9]\\\\d*|x|X|\\\\*))?(\\\\.(0|[1-9]\\\\d*|x|X|\\\\*]))?(-([0-9A-Za-z\\\\-]+(\\\\.[0-9A-Za-z\\\\-]+)*))?(\\\\+([0-9A-Za-z\\\\-]+(\\\\.[0-9A-Za-z\\\\-]+)*))?)\\\\s*)*$")',
                    },
                  ],
                },
              },
              required: ['packageName'],
              type: 'object',
            },
            sourceType: { enum: ['Catalog'], type: 'string' },
          },
          required: ['sourceType'],
          type: 'object',
          'x-kubernetes-validations': [
            {
              message: 'catalog is required when sourceType is Catalog, and forbidden otherwise',
              rule: "has(self.sourceType) && self.sourceType == 'Catalog' ? has(self.catalog) : !has(self.catalog)",
            },
          ],
        },
      },
      required: ['namespace', 'source'],
      type: 'object',
    },
  },
  type: 'object',
};
