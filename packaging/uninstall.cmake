# Removes what "cmake --install" put there, which it has listed in the build folder.
file(STRINGS install_manifest.txt files)
file(REMOVE ${files})
