import type { SchemaSource } from '../schema/schema.js';

/** Schema of ClusterCatalog without its status. (Source: API of operator-controller, Apache-2.0.) */
export const clusterCatalogSchema: SchemaSource = {
  properties: {
    apiVersion: { type: 'string' },
    kind: { type: 'string' },
    metadata: { type: 'object' },
    spec: {
      properties: {
        availabilityMode: { default: 'Available', enum: ['Unavailable', 'Available'], type: 'string' },
        priority: { default: 0, format: 'int32', maximum: 2147483647, minimum: -2147483648, type: 'integer' },
        source: {
          properties: {
            image: {
              properties: {
                pollIntervalMinutes: { minimum: 1, type: 'integer' },
                ref: {
                  maxLength: 1000,
                  type: 'string',
                  'x-kubernetes-validations': [
                    {
                      message:
                        'must start with a valid domain. valid domains must be alphanumeric characters (lowercase and uppercase) separated by the "." character.',
                      rule: "self.matches('^([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])((\\\\.([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))+)?(:[0-9]+)?\\\\b')",
                    },
                    {
                      message:
                        'a valid name is required. valid names must contain lowercase alphanumeric characters separated only by the ".", "_", "__", "-" characters.',
                      rule: 'self.find(\'(\\\\/[a-z0-9]+((([._]|__|[-]*)[a-z0-9]+)+)?((\\\\/[a-z0-9]+((([._]|__|[-]*)[a-z0-9]+)+)?)+)?)\') != ""',
                    },
                    {
                      message: 'must end with a digest or a tag',
                      rule: 'self.find(\'(@.*:)\') != "" || self.find(\':.*$\') != ""',
                    },
                    {
                      message: 'tag is invalid. the tag must not be more than 127 characters',
                      rule: "self.find('(@.*:)') == \"\" ? (self.find(':.*$') != \"\" ? self.find(':.*$').substring(1).size() <= 127 : true) : true",
                    },
                    {
                      message:
                        'tag is invalid. valid tags must begin with a word character (alphanumeric + "_") followed by word characters or ".", and "-" characters',
                      rule: "self.find('(@.*:)') == \"\" ? (self.find(':.*$') != \"\" ? self.find(':.*$').matches(':[\\\\w][\\\\w.-]*$') : true) : true",
                    },
                    {
                      message:
                        'digest algorithm is not valid. valid algorithms must start with an uppercase or lowercase alpha character followed by alphanumeric characters and may contain the "-", "_", "+", and "." characters.',
                      rule: "self.find('(@.*:)') != \"\" ? self.find('(@.*:)').matches('(@[A-Za-z][A-Za-z0-9]*([-_+.][A-Za-z][A-Za-z0-9]*)*[:])') : true",
                    },
                    {
                      message: 'digest is not valid. the encoded string must be at least 32 characters',
                      rule: "self.find('(@.*:)') != \"\" ? self.find(':.*$').substring(1).size() >= 32 : true",
                    },
                    {
                      message:
                        'digest is not valid. the encoded string must only contain hex characters (A-F, a-f, 0-9)',
                      rule: "self.find('(@.*:)') != \"\" ? self.find(':.*$').matches(':[0-9A-Fa-f]*$') : true",
                    },
                  ],
                },
              },
              required: ['ref'],
              type: 'object',
              'x-kubernetes-validations': [
                {
                  message: 'cannot specify pollIntervalMinutes while using digest-based image',
                  rule: 'self.ref.find(\'(@.*:)\') != "" ? !has(self.pollIntervalMinutes) : true',
                },
              ],
            },
            type: { enum: ['Image'], type: 'string' },
          },
          required: ['type'],
          type: 'object',
          'x-kubernetes-validations': [
            {
              message: 'image is required when source type is Image, and forbidden otherwise',
              rule: "has(self.type) && self.type == 'Image' ? has(self.image) : !has(self.image)",
            },
          ],
        },
      },
      required: ['source'],
      type: 'object',
    },
  },
  required: ['metadata', 'spec'],
  type: 'object',
};
