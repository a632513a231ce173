/** What an option is, and what reading it looks at. Pure. */

export interface Option {
  readonly name: string
  /** The JSON schema of the values that plugin.yml accepts. */
  readonly schema:
    | 'string'
    | 'name'
    | 'boolean'
    | 'boolean or port'
    | 'integer'
    | 'duration'
    | 'list'
    | 'version'
    | 'config'
    | 'builder'
  /** As shown to people; what an absent option means. */
  readonly default: string
  readonly sentence: string
}

/** Options that belong together, with the page that has more on them. */
export interface OptionGroup {
  readonly title: string
  readonly page: string
  readonly options: readonly Option[]
}

/** Reads a file that an option names; undefined where there is none. @throws Problem where it cannot be read */
export type ReadFile = (path: string) => string | undefined

/** What parsing looks at beside the options. */
export interface ParseWorld {
  readonly readFile: ReadFile
  /** What is wrong with a Kubernetes version, such as 1.34 or 1.34.0; undefined where there is a node image for it. */
  readonly refuseVersion: (version: string) => string | undefined
}
