/**
 * Requirements that wait for a feature that is not in this version, and that feature. An id leaves this table in the
 * change that brings the feature and its tests. Keys are ids or whole families.
 */
export const LATER: Readonly<Record<string, string>> = {
  'PO-04': 'the orchestrator',
  OR: 'the orchestrator, with tools, prompts and the journal',
  CA: 'the code agent',
  WS: 'workspaces: files, programs and sessions beyond one run',
}
