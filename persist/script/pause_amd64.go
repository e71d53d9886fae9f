package script

// Pause lets the rest of the core, and of the power that cores share, to others for a moment: who looks whether there is
// work does so between two of them.
func Pause()
