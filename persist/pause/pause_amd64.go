package pause

func pause()
