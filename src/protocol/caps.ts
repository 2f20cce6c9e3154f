const MiB = 1024 * 1024

/**
 * What harness and host both hold to, so that neither sends what the other refuses. The harness has the same numbers in
 * its own sources; test/protocol/caps.test.ts compares them.
 */
export const CAPS: {
  /** Collected files of one run. */
  readonly files: number
  /** One collected file. */
  readonly fileBytes: number
  /** All collected files of one run. */
  readonly totalBytes: number
  /** Directories above a collected file. */
  readonly fileDepth: number
  /** Characters of the label of an intermediate and of the level of a log. */
  readonly label: number
  readonly level: number
  /** Characters of the shortest secret that is redacted. */
  readonly secret: number
  /** One tool call's arguments, and one answer, as JSON. */
  readonly toolBytes: number
  /** Python tools that one run brings along. */
  readonly toolSources: number
  /** The source of one of them, in UTF-8. */
  readonly toolSourceBytes: number
} = {
  files: 100,
  fileBytes: 4 * MiB,
  totalBytes: 64 * MiB,
  fileDepth: 64,
  label: 1024,
  level: 64,
  secret: 4,
  toolBytes: 16 * MiB,
  toolSources: 256,
  toolSourceBytes: MiB,
}
