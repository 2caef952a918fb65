import type { SchemaSource } from '../schema/schema.js';

/** Schema of ClusterObjectSet without its status. (Source: API of operator-controller, Apache-2.0.) */
export const clusterObjectSetSchema: SchemaSource = {
  properties: {
    apiVersion: { type: 'string' },
    kind: { type: 'string' },
    metadata: { type: 'object' },
    spec: {
      properties: {
        collisionProtection: {
          enum: ['Prevent', 'IfNoController', 'None'],
          type: 'string',
          'x-kubernetes-validations': [
            { message: 'collisionProtection is immutable', rule: 'self == oldSelf' },
          ],
        },
        lifecycleState: {
          enum: ['Active', 'Archived'],
          type: 'string',
          'x-kubernetes-validations': [
            {
              message: 'cannot un-archive',
              rule: "oldSelf == 'Active' || oldSelf == 'Archived' && oldSelf == self",
            },
          ],
        },
        phases: {
          items: {
            properties: {
              collisionProtection: { enum: ['Prevent', 'IfNoController', 'None'], type: 'string' },
              name: {
                maxLength: 63,
                minLength: 1,
                type: 'string',
                'x-kubernetes-validations': [
                  {
                    message:
                      'the value must consist of only lowercase alphanumeric characters and hyphens, and must start and end with an alphanumeric character.',
                    rule: '!format.dns1123Label().validate(self).hasValue()',
                  },
                ],
              },
              objects: {
                items: {
                  properties: {
                    collisionProtection: { enum: ['Prevent', 'IfNoController', 'None'], type: 'string' },
                    object: {
                      type: 'object',
                      'x-kubernetes-embedded-resource': true,
                      'x-kubernetes-preserve-unknown-fields': true,
                    },
                    ref: {
                      properties: {
                        key: { maxLength: 253, minLength: 1, type: 'string' },
                        name: { maxLength: 253, minLength: 1, type: 'string' },
                        namespace: { maxLength: 63, type: 'string' },
                      },
                      required: ['key', 'name'],
                      type: 'object',
                    },
                  },
                  type: 'object',
                  'x-kubernetes-validations': [
                    {
                      message: 'exactly one of the fields in [object ref] must be set',
                      rule: '[has(self.object),has(self.ref)].filter(x,x==true).size() == 1',
                    },
                  ],
                },
                maxItems: 50,
                type: 'array',
              },
            },
            required: ['name', 'objects'],
            type: 'object',
          },
          maxItems: 20,
          type: 'array',
          'x-kubernetes-list-map-keys': ['name'],
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-validations': [
            { message: 'phases is immutable', rule: 'self == oldSelf || oldSelf.size() == 0' },
          ],
        },
        progressDeadlineMinutes: { format: 'int32', maximum: 720, minimum: 10, type: 'integer' },
        progressionProbes: {
          items: {
            properties: {
              assertions: {
                items: {
                  properties: {
                    conditionEqual: {
                      properties: {
                        status: { enum: ['True', 'False'], type: 'string' },
                        type: { maxLength: 200, minLength: 1, type: 'string' },
                      },
                      required: ['status', 'type'],
                      type: 'object',
                    },
                    fieldValue: {
                      properties: {
                        fieldPath: {
                          maxLength: 200,
                          minLength: 1,
                          type: 'string',
                          'x-kubernetes-validations': [
                            {
                              message:
                                'must contain a valid field path. valid fields contain upper or lower-case alphanumeric characters separated by the "." character.',
                              rule: "self.matches('^[a-zA-Z0-9]+(?:\\\\.[a-zA-Z0-9]+)*$')",
                            },
                          ],
                        },
                        value: { maxLength: 200, minLength: 1, type: 'string' },
                      },
                      required: ['fieldPath', 'value'],
                      type: 'object',
                    },
                    fieldsEqual: {
                      properties: {
                        fieldA: {
                          maxLength: 200,
                          minLength: 1,
                          type: 'string',
                          'x-kubernetes-validations': [
                            {
                              message:
                                'must contain a valid field path. valid fields contain upper or lower-case alphanumeric characters separated by the "." character.',
                              rule: "self.matches('^[a-zA-Z0-9]+(?:\\\\.[a-zA-Z0-9]+)*$')",
                            },
                          ],
                        },
                        fieldB: {
                          maxLength: 200,
                          minLength: 1,
                          type: 'string',
                          'x-kubernetes-validations': [
                            {
                              message:
                                'must contain a valid field path. valid fields contain upper or lower-case alphanumeric characters separated by the "." character.',
                              rule: "self.matches('^[a-zA-Z0-9]+(?:\\\\.[a-zA-Z0-9]+)*$')",
                            },
                          ],
                        },
                      },
                      required: ['fieldA', 'fieldB'],
                      type: 'object',
                    },
                    type: { enum: ['ConditionEqual', 'FieldsEqual', 'FieldValue'], type: 'string' },
                  },
                  required: ['type'],
                  type: 'object',
                  'x-kubernetes-validations': [
                    {
                      message:
                        'conditionEqual is required when type is ConditionEqual, and forbidden otherwise',
                      rule: "self.type == 'ConditionEqual' ?has(self.conditionEqual) : !has(self.conditionEqual)",
                    },
                    {
                      message: 'fieldsEqual is required when type is FieldsEqual, and forbidden otherwise',
                      rule: "self.type == 'FieldsEqual' ?has(self.fieldsEqual) : !has(self.fieldsEqual)",
                    },
                    {
                      message: 'fieldValue is required when type is FieldValue, and forbidden otherwise',
                      rule: "self.type == 'FieldValue' ?has(self.fieldValue) : !has(self.fieldValue)",
                    },
                  ],
                },
                maxItems: 20,
                minItems: 1,
                type: 'array',
                'x-kubernetes-list-type': 'atomic',
              },
              selector: {
                properties: {
                  groupKind: {
                    properties: { group: { type: 'string' }, kind: { type: 'string' } },
                    required: ['group', 'kind'],
                    type: 'object',
                  },
                  label: {
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
                    'x-kubernetes-validations': [
                      {
                        message: 'exactly one of matchLabels or matchExpressions must be set',
                        rule: '(has(self.matchExpressions) && !has(self.matchLabels)) || (!has(self.matchExpressions) && has(self.matchLabels))',
                      },
                    ],
                  },
                  type: { enum: ['GroupKind', 'Label'], type: 'string' },
                },
                required: ['type'],
                type: 'object',
                'x-kubernetes-validations': [
                  {
                    message: 'groupKind is required when type is GroupKind, and forbidden otherwise',
                    rule: "self.type == 'GroupKind' ?has(self.groupKind) : !has(self.groupKind)",
                  },
                  {
                    message: 'label is required when type is Label, and forbidden otherwise',
                    rule: "self.type == 'Label' ?has(self.label) : !has(self.label)",
                  },
                ],
              },
            },
            required: ['assertions', 'selector'],
            type: 'object',
          },
          maxItems: 20,
          minItems: 1,
          type: 'array',
          'x-kubernetes-list-type': 'atomic',
        },
        revision: {
          format: 'int64',
          minimum: 1,
          type: 'integer',
          'x-kubernetes-validations': [{ message: 'revision is immutable', rule: 'self == oldSelf' }],
        },
      },
      required: ['collisionProtection', 'lifecycleState', 'revision'],
      type: 'object',
    },
  },
  type: 'object',
};
