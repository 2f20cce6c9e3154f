/** A file to put into a workspace. */
export interface PutFile {
  /** Relative to the workspace. */
  readonly path: string
  readonly content: Uint8Array | string
  /** POSIX permission bits. Absent or 0: `0o644`. */
  readonly mode?: number
}

/** A file of a workspace, read. */
export interface File {
  /** Its path, relative to the workspace. */
  readonly name: string
  /** Its text if the MIME type is a text type, else `''`. */
  readonly content: string
  /** Its bytes, up to the limit. */
  readonly data: Uint8Array
  readonly mimeType: string
  /** The size of the whole file. */
  readonly sizeBytes: number
  /** True if `data` is only its beginning. */
  readonly truncated: boolean
}

/** A file that was collected by a spec. */
export interface FileRef {
  /** Its path, relative to the workspace. */
  readonly name: string
  readonly mimeType: string
  /** Its text, if the spec says `inline` and the MIME type is a text type; else `''`. */
  readonly content: string
  /** The name of the artifact; `''` if it was not saved. */
  readonly savedAs: string
  /** The version of the artifact; 0 if it was not saved. */
  readonly version: number
  /** The size of the whole file. */
  readonly sizeBytes: number
  /** True if the limits allowed only a part of the file to be read. */
  readonly truncated: boolean
}

/** The files that a spec collected. */
export interface OutputManifest {
  readonly files: readonly FileRef[]
  /** True if there were more files or more bytes than the limits allow. */
  readonly limitsHit: boolean
  /** Matching entries that are not files in the workspace: links that lead out or nowhere, devices. */
  readonly skipped: readonly { readonly path: string; readonly message: string }[]
}

/** An input of a workspace. */
export interface InputSpec {
  /** `artifact://NAME[@VERSION]`, `host:///ABSOLUTE/PATH`, `workspace://PATH` or `skill://NAME/PATH`. */
  readonly from: string
  /** The path of the input, relative to the workspace. Default `work/inputs/NAME`. */
  readonly to?: string
  /** `link`: a link, or the file of the host itself, where that is possible; else a copy. Default `copy`. */
  readonly mode?: 'copy' | 'link'
  /** For an artifact without a version, uses the version that was last staged to the same path. */
  readonly pin?: boolean
}
