"""The parts of the plugin. Sublime Text loads only the files of the package's own folder as plugins."""
