/** What findings are printed as: for people, as data, for code hosts and for build servers. */
export const reportFormats = ['text', 'json', 'yaml', 'sarif', 'junit', 'github'] as const;

export type ReportFormat = (typeof reportFormats)[number];
