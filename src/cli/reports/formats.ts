/** Output formats of findings: text, data, code hosts and build servers. */
export const reportFormats = ['text', 'json', 'yaml', 'sarif', 'junit', 'github'] as const;

export type ReportFormat = (typeof reportFormats)[number];
