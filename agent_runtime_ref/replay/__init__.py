"""What a change of the policies would have changed: two bundles compared, and recorded decisions replayed."""
