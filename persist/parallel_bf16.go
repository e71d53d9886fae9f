package persist

// The exchange in bfloat16 on a device: all gradients are rounded into one buffer, which the communicator sums, and the sums
// come back as floats. This rank's gradients stay as they are, as in parallel_device.go.

// wholeLoads is what a parameter's numbers in the buffer are a multiple of: four of them are one load, or store.
const wholeLoads = 4

// numbers is how many a parameter has in the buffer.
func (y *exchanged) numbers() uint64 {
	return (uint64(y.all.floats(y.parameter)) + wholeLoads - 1) &^ (wholeLoads - 1)
}

// placeBF16 finds out where in the buffer gradients go, and puts this rank's there, times its share. What only others have
// is 0.
func (x *exchange) placeBF16() (err error) {
	d := x.e.ranks.device
	d.before, d.behind, d.count = d.before[:0], d.behind[:0], 0
	for i := range x.params {
		d.count += x.params[i].numbers()
	}
	if d.count == 0 {
		return nil
	}
	if d.packed, err = d.memory.Packed(d.count / 2); err != nil {
		return err
	}
	buffer := d.packed
	for i := range x.params {
		y := &x.params[i]
		own, sums, err := d.addresses(y)
		if err != nil {
			return err
		}
		x.give(y, own, buffer, 2)
		d.take(y, buffer, sums, 2)
		buffer += 2 * y.numbers()
	}
	if x.share == 0 || x.own < x.total {
		if err := d.memory.Fill(d.packed, 0, d.count/2); err != nil {
			return err
		}
	}
	return d.memory.Pack(d.before, x.share)
}
