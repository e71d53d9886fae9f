package script

func pause()
