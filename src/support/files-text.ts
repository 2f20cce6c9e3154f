const MAX_PATHS = 50

/** Sentences for a model on the files that its scripts find and leave; empty without any. */
export function filesText(files: readonly string[], collect: readonly string[]): string {
  const sentences = [
    files.length === 0 ? '' : `Files in the working directory: ${listText(files)}. Read them with open().`,
    collect.length === 0 ? '' : `Write files for the user to paths that match ${listText(collect)}.`,
  ]
  return sentences.filter((sentence) => sentence !== '').join('\n')
}

function listText(paths: readonly string[]): string {
  const more = paths.length > MAX_PATHS ? ` and ${paths.length - MAX_PATHS} more` : ''
  return `${paths
    .slice(0, MAX_PATHS)
    .map((path) => JSON.stringify(path))
    .join(', ')}${more}`
}
