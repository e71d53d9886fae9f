package crew

func pause()
